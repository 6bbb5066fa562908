// The parts of parse_case() and write_case(): recipes, single values, experiments. For case_json*.cpp only.
#pragma once

#include <filesystem>
#include <string_view>

#include "model/case.h"
#include "model/json_text.h"
#include "model/json_tree.h"

namespace fusediff {

Literal read_literal(const JsonView& at, JsonTrouble& trouble);
// folder: of files that bits stand in; "" refuses them.
Fill read_fill(const JsonView& at, JsonTrouble& trouble, const std::filesystem::path& folder);

Experiment read_experiment(const JsonView& at, JsonTrouble& trouble, const std::filesystem::path& folder);
// A case that stands in an experiment: without one of its own; "fusediff_case" may be left out.
Case read_inner_case(const JsonView& at, JsonTrouble& trouble, const std::filesystem::path& folder);

// hex: real numbers as hex floats, exact to a reader; else as the shortest decimal.
void write_literal(JsonText& json, const Literal& literal, bool hex);
void write_fill(JsonText& json, const Fill& fill);
// "experiment": {...}; nothing for a pair.
void write_experiment(JsonText& json, const Experiment& experiment);
// The members of a case without version and experiment.
void write_call(JsonText& json, const Case& c);

}  // namespace fusediff
