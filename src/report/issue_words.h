// The words of ISSUE.md, one table a language: a new language is one more table. No facts here, and no order of them.
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "model/experiment.h"
#include "model/finding.h"

namespace fusediff {

// Markdown. {0}, {1}, ... stand for what is filled in, the same in every language.
struct ClassWords {
  std::string_view defect;    // for the title; {0}: the tensor
  std::string_view meaning;   // one sentence
  std::string_view expected;  // {0}: the tensor, {1}: the accused side, {2}: the other one
};

// A sentence that the engine or an oracle wrote, with {0}, {1}, ... for what varies, and what it is in this language.
struct SentenceWords {
  std::string_view from;
  std::string_view to;
  bool verbatim = false;  // what varies is quoted, not told in its turn
};

struct IssueWords {
  std::array<ClassWords, kFindingClassCount> classes;              // by FindingClass
  std::array<std::string_view, kRelationKindCount> relations;      // by RelationKind: behind "gives other bits"
  std::array<std::string_view, kExperimentKindCount> experiments;  // by ExperimentKind

  std::string_view gap, comma, semicolon, colon;  // between sentences, in lists, before what is explained

  // Headings.
  std::string_view expected, actual, evidence, smallest, run, ruled_out, environment, reading;

  // {0}: operator, {1}: path, {2}: what is wrong, {3}: the condition, which is {0} in its own words.
  std::string_view title, condition;
  std::string_view versus;  // {0}, {1}: two paths, none of them accused
  // What is wrong, in a title, where there is more to say than the class; {0}: the tensor.
  std::string_view title_bytes, title_error, title_deaf, title_tie, title_pick, title_relation, title_relation_damage,
      title_history, title_repeat, title_rate, title_message, title_integer;

  // The table of where.
  std::string_view row_op, row_path, row_against, row_output, row_stage, row_dtype, row_experiment, row_class,
      row_one_path, stage_of;

  // Expected, beside what the class expects.
  std::string_view expect_empty, expect_distinct, expect_range, expect_finite, expect_sums, expect_permutation,
      expect_quotient, expect_direction, expect_tie, expect_bound, expect_relative, expect_reference, expect_integer,
      expect_no_truth, expect_follow, expect_relation, expect_history, expect_repeat, expect_inside;

  // Actual.
  std::string_view bytes_unwritten, bytes_follow, bytes_at, memory_output, memory_workspace, memory_guard, rate_of,
      rate_pinned, shown_in, differ_from_alone, always_alike, ways, pick_is, pick_rows, ranks_tie, ranks_nan,
      ranks_apart, no_ranks, sum_of, value_is, value_truth, value_rounds, value_far, gradient_is, place_direction,
      place_index, opposite, difference, worst_at, only_zero_sign, only_nan_bits, reproducibility;

  // Evidence: heads of columns, cells, lines.
  std::string_view col_output, col_stage, col_dtype, col_differing, col_max, col_median, col_error, col_bound,
      col_class, col_quantity, col_pick, col_gap, col_run, col_calls, col_wrong, col_digests, col_gradient,
      col_quotient, col_f64;
  std::string_view of_total, ulp, nan_against, exact_tie, both_nan, apart, judged, starts_at, equal_outputs,
      zero_outputs, minus, empty_bound, follow_on, influence, cause, also, more, sweep, no_more_outputs;

  // The smallest input.
  std::string_view dims, attrs, defaults, layout, unwanted, all_of, set_to, block, drawn_from, raw_bits, elements, idle,
      flat_places, as_found, stride_is, offset_is, at_start, in_middle, lies_on, other_calls, threads_are, repeats_are,
      reset, reset_layout, reset_input, reset_experiment;

  // How to run.
  std::string_view run_repro, run_repro_file, run_replay, replayed;

  // What was ruled out.
  std::string_view not_chance, not_alone, not_cause, not_rounding, not_reference, not_beyond, not_fill, not_quotient,
      not_memory, not_inputs, nothing_ruled_out;

  // Environment.
  std::string_view env_target, env_against, env_system, env_cpu, env_features, env_fusediff, env_opened, env_unreadable;

  // How to read it.
  std::string_view read_head, read_ulp, read_stage, read_bound, read_derivation, read_fill, read_context, read_gradient,
      read_relation, read_signature;

  std::span<const SentenceWords> sentences;
};

extern const IssueWords kEnglishIssue;
extern const IssueWords kChineseIssue;

// The words with values in place of {0}, {1}, ...
std::string fill_in(std::string_view words, std::initializer_list<std::string> values);

// The sentence by the first pattern that fits it as a whole; as it is where none does.
std::string told_in(const IssueWords& words, const std::string& sentence);

}  // namespace fusediff
