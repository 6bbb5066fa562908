// What libFuzzer is told of a check: coarse values as extra counters, since vendor libraries carry no instrumentation.
// Every counter can cost a corpus entry, so there are a few thousand at most.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/check.h"
#include "model/case.h"

namespace fusediff {

// Sets the counters of one check of the operator with this position in the schema. libFuzzer clears them before each
// input. The result: how many no earlier check of this process had set.
std::size_t report_features(std::size_t op, const Case& c, const CheckResult& result);
// Something that is no case: so that libFuzzer keeps one such input, and with it a place to start from.
void report_nothing();

}  // namespace fusediff
