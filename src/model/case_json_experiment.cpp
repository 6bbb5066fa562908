#include <string>
#include <vector>

#include "model/case_json.h"
#include "model/case_read.h"
#include "model/quote.h"

namespace fusediff {
namespace {

// What a case means that leaves them out.
constexpr std::int64_t kRepeats = 16;
constexpr std::int64_t kThreadCount = 8;
constexpr std::int64_t kRounds = 4;

std::string_view name_of_calls(ExperimentKind kind) { return kind == ExperimentKind::kThreads ? "mates" : "calls"; }

std::int64_t read_optional(JsonObject& object, std::string_view key, JsonTrouble& trouble, std::string_view what,
                           std::int64_t standard, std::int64_t low, std::int64_t high) {
  const auto value = object.find(key);
  return value ? read_integer(*value, trouble, what, low, high) : standard;
}

void read_calls(JsonObject& object, Experiment& e, JsonTrouble& trouble, const std::filesystem::path& folder) {
  const auto calls = object.find(name_of_calls(e.kind));
  if (!calls || !expect_array(*calls, trouble, "a list of cases", 0, kMostCalls)) return;
  for (const JsonView item : *calls) {
    e.calls.push_back(read_inner_case(item, trouble, folder));
    if (trouble.any()) return;
  }
}

void read_relation(const JsonView& at, Experiment& e, JsonTrouble& trouble) {
  if (!expect_object(at, trouble, "a relation")) return;
  if (at.size() != 1) {
    trouble.at(
        at, "one relation belongs here, e.g. {\"row_alone\": {\"row\": 3}}; here stand " + std::to_string(at.size()));
    return;
  }
  const JsonView item = *at.begin();
  const std::optional<RelationKind> kind = relation_named(item.key());
  if (!kind) {
    std::vector<std::string> known;
    for (int k = 0; k < kRelationKindCount; ++k) known.emplace_back(name_of(static_cast<RelationKind>(k)));
    trouble.at(item, not_one_of(item.key(), "a relation", known));
    return;
  }
  e.relation = *kind;
  JsonObject object(item, trouble, "the parameters of a relation");
  if (e.relation == RelationKind::kRowAlone || e.relation == RelationKind::kBatchSplit)
    e.row = read_optional(object, "row", trouble, "a row", 0, 0, std::numeric_limits<std::int64_t>::max());
  if (e.relation == RelationKind::kRowsPermuted) {
    if (const auto seed = object.find("seed")) e.seed = read_unsigned(*seed, trouble, "a seed");
  }
  object.finish();
}

void read_parameters(const JsonView& at, Experiment& e, JsonTrouble& trouble, const std::filesystem::path& folder) {
  if (e.kind == ExperimentKind::kRelation) return read_relation(at, e, trouble);
  JsonObject object(at, trouble, "the parameters of " + std::string(name_of(e.kind)) + ", an object");
  if (e.kind == ExperimentKind::kRepeat)
    e.count = read_optional(object, "count", trouble, "a number of runs", kRepeats, 2, kMostRepeats);
  if (e.kind == ExperimentKind::kThreads) {
    e.count = read_optional(object, "count", trouble, "a number of threads", kThreadCount, 2, kMostThreads);
    e.rounds = read_optional(object, "rounds", trouble, "a number of rounds", kRounds, 1, kMostRounds);
  }
  if (e.kind == ExperimentKind::kThreads || e.kind == ExperimentKind::kGradient) {
    if (const auto seed = object.find("seed")) e.seed = read_unsigned(*seed, trouble, "a seed");
  }
  const bool has_calls =
      e.kind == ExperimentKind::kRepeat || e.kind == ExperimentKind::kThreads || e.kind == ExperimentKind::kHistory;
  if (has_calls) read_calls(object, e, trouble, folder);
  object.finish();
}

void write_calls(JsonText& json, const Experiment& e) {
  if (e.calls.empty()) return;
  json.key(name_of_calls(e.kind));
  json.open('[');
  for (const Case& call : e.calls) {
    json.open('{');
    write_call(json, call);
    json.close('}');
  }
  json.close(']');
}

void write_relation(JsonText& json, const Experiment& e) {
  json.key(name_of(e.relation));
  json.open('{');
  if (e.relation == RelationKind::kRowAlone || e.relation == RelationKind::kBatchSplit) {
    json.key("row");
    json.integer(e.row);
  }
  if (e.relation == RelationKind::kRowsPermuted) {
    json.key("seed");
    json.integer(e.seed);
  }
  json.close('}');
}

}  // namespace

Experiment read_experiment(const JsonView& at, JsonTrouble& trouble, const std::filesystem::path& folder) {
  Experiment e;
  if (!expect_object(at, trouble, "an experiment")) return e;
  if (at.size() != 1) {
    trouble.at(at, "a case has one experiment, e.g. {\"pair\": {}}; here stand " + std::to_string(at.size()));
    return e;
  }
  const JsonView item = *at.begin();
  const std::optional<ExperimentKind> kind = experiment_named(item.key());
  if (!kind) {
    std::vector<std::string> known;
    for (int k = 0; k < kExperimentKindCount; ++k) known.emplace_back(name_of(static_cast<ExperimentKind>(k)));
    trouble.at(item, not_one_of(item.key(), "an experiment", known));
    return e;
  }
  e.kind = *kind;
  read_parameters(item, e, trouble, folder);
  return e;
}

void write_experiment(JsonText& json, const Experiment& e) {
  if (e.kind == ExperimentKind::kPair) return;
  json.key("experiment");
  json.open('{');
  json.key(name_of(e.kind));
  json.open('{');
  if (e.kind == ExperimentKind::kRelation) write_relation(json, e);
  if (e.kind == ExperimentKind::kRepeat || e.kind == ExperimentKind::kThreads) {
    json.key("count");
    json.integer(e.count);
  }
  if (e.kind == ExperimentKind::kThreads) {
    json.key("rounds");
    json.integer(e.rounds);
  }
  if (e.kind == ExperimentKind::kThreads || e.kind == ExperimentKind::kGradient) {
    json.key("seed");
    json.integer(e.seed);
  }
  write_calls(json, e);
  json.close('}');
  json.close('}');
}

}  // namespace fusediff
