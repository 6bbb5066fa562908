// The parts of ISSUE.md, each a function from the facts of a bundle to Markdown in one language. What a class means for
// its reader stands in issue_expected.cpp, tables in issue_evidence.cpp, the input in issue_input.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/bundle.h"
#include "report/issue_words.h"

namespace fusediff {

struct IssueFacts {
  const Bundle& bundle;
  const Finding& f;
  const IssueWords& w;
  std::array<std::string, 2> side;     // [Side] what the two sides are called, ready to print
  std::optional<std::size_t> accused;  // [Side] by the naming evidence
  std::string path;                    // the path that the finding is about, ready to print
};
IssueFacts issue_facts(const Bundle& bundle, const IssueWords& words);

// Text for Markdown: a name or number as code, a sentence with nothing that Markdown would take for its own.
std::string as_code(std::string_view text);
std::string as_text(std::string_view text);
// A sentence of the engine or an oracle in this language, as text; folders of the machine are cut from paths.
std::string told(const IssueFacts& facts, const std::string& sentence);
// "a, b, c" as code.
std::string code_list(const IssueFacts& facts, const std::vector<std::string>& names);
// "| a | b |\n"
std::string table_row(const std::vector<std::string>& cells);
std::string table_head(const std::vector<std::string>& cells);

// The call that differs is one beside the case: what was recorded of the case's own outputs is not about it.
bool is_of_other_call(const Finding& f);
// Of the recorded outputs, "target/y"; null where it is not among them.
const StoredTensor* recorded(const IssueFacts& facts, const std::string& name);
// "[0, 3]" of a flat index; "" where it lies outside.
std::string place_in(const StoredTensor& tensor, std::int64_t index);
// "`y[0, 3]`", or "`y` index 3" where the shape is not known.
std::string element_place(const IssueFacts& facts, const std::string& output, std::int64_t index);
// "0.5000000000 (`0x3f000000`)"
std::string element_value(DType dtype, std::uint64_t bits);
// The output's value in f64, where it was recorded.
std::optional<double> recorded_truth(const IssueFacts& facts, const std::string& output, std::int64_t index);
std::string ulp_text(const IssueFacts& facts, std::uint64_t distance);
// The difference of the output that names the finding; else the first; null without any.
const Difference* named_difference(const Finding& f);
// A note of the finding that says what next to the input passes, or what it needs.
bool is_about_input(const std::string& note);
// On this side both candidates rank as NaN, which no comparison puts in order.
bool both_nan(const Flip& flip, std::size_t side);
// Do the neighbours of the input show that this size or attribute matters?
bool matters_by_neighbours(const Finding& f, const std::string& name);
bool is_relation(const Finding& f);  // judged as two ways of one path

// What the accused side does not follow by a sentence of the influence, "grad_out"; "" where it is not about that side.
std::string ignored_in(const IssueFacts& facts, const std::string& influence);
// How a difference was judged, and the derivation of the bound behind it; "" where none is stated.
std::string judgement_of(const Difference& d);
std::string derivation_of(const Difference& d);

std::string issue_title(const IssueFacts& facts);
// Paragraphs and lists, each ending with a newline.
std::string issue_expected(const IssueFacts& facts);
std::string issue_actual(const IssueFacts& facts);
std::string issue_evidence(const IssueFacts& facts);
std::string issue_input(const IssueFacts& facts);
std::string issue_ruled_out(const IssueFacts& facts);
std::string issue_environment(const IssueFacts& facts);
std::string issue_reading(const IssueFacts& facts);

}  // namespace fusediff
