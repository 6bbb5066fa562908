// Tells the mutators what both sides rank by: the probe of mutate/mutate.h, answered by running the case.
#pragma once

#include <functional>

#include "engine/check.h"
#include "mutate/mutate.h"

namespace fusediff {

// before and after are called around every run of a target, with the case that runs.
Probe make_probe(Engine& engine, std::function<void(const Case&)> before, std::function<void()> after);

}  // namespace fusediff
