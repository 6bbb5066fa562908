// fusediff-bench: how much a check costs beside the two paths that it runs. Prints a table; every figure of it comes
// from the run that prints it, and the ratios are the ones to quote. Judges nothing.
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "engine/check.h"
#include "model/case_json.h"

namespace fusediff {
namespace {

struct Subject {
  const char* name;
  const char* json;
};

constexpr Subject kSubjects[] = {
    {"moe_gating_topk f32 T=1 E=512 k=10",
     R"({"fusediff_case": 1, "op": "moe_gating_topk", "dims": {"T": 1, "E": 512, "K": 10, "G": 1, "KG": 1}, "dtypes": {"x": "f32"},
         "attrs": {"norm_type": "sigmoid"}, "inputs": {"x": {"fill": {"normal": {"mean": 0, "std": 1}, "seed": 1}},
         "bias": {"fill": {"uniform": [-0.1, 0.1], "seed": 2}}}})"},
    {"moe_gating_topk f32 T=256 E=512 k=10",
     R"({"fusediff_case": 1, "op": "moe_gating_topk", "dims": {"T": 256, "E": 512, "K": 10, "G": 1, "KG": 1}, "dtypes": {"x": "f32"},
         "attrs": {"norm_type": "sigmoid"}, "inputs": {"x": {"fill": {"normal": {"mean": 0, "std": 1}, "seed": 1}},
         "bias": {"fill": {"uniform": [-0.1, 0.1], "seed": 2}}}})"},
    {"moe_unpermute bf16 T=64 H=256 K=4",
     R"({"fusediff_case": 1, "op": "moe_unpermute", "dims": {"T": 64, "H": 256, "E": 16, "K": 4, "N": 256}, "dtypes": {"in": "bf16"},
         "inputs": {"in": {"fill": {"uniform": [0, 1], "seed": 1}}, "indices": {"fill": {"uniform": {}, "seed": 2}},
         "tokens": {"fill": {"uniform": [0, 1], "seed": 3}}, "probs": {"fill": {"uniform": [0, 1], "seed": 4}}}})"},
    {"add f32 1x1",
     R"({"fusediff_case": 1, "op": "add", "dims": {"R": 1, "C": 1}, "dtypes": {"a": "f32"}, "inputs": {
         "a": {"fill": {"uniform": [0, 1], "seed": 1}}, "b": {"fill": {"uniform": [0, 1], "seed": 2}}}})"},
    {"add f32 1x1, in 8 threads once each",
     R"({"fusediff_case": 1, "op": "add", "dims": {"R": 1, "C": 1}, "dtypes": {"a": "f32"}, "inputs": {
         "a": {"fill": {"uniform": [0, 1], "seed": 1}}, "b": {"fill": {"uniform": [0, 1], "seed": 2}}},
         "experiment": {"threads": {"count": 8, "rounds": 1}}})"},
    {"add f32 1x1, 16 times on one context",
     R"({"fusediff_case": 1, "op": "add", "dims": {"R": 1, "C": 1}, "dtypes": {"a": "f32"}, "inputs": {
         "a": {"fill": {"uniform": [0, 1], "seed": 1}}, "b": {"fill": {"uniform": [0, 1], "seed": 2}}},
         "experiment": {"repeat": {"count": 16}}})"},
};

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Measured {
  std::uint64_t checks = 0;
  double wall = 0;
  double inside = 0;  // the two paths
};

// fresh: the seeds change from check to check, so that every check draws its inputs anew; else the case stays, as most
// inputs of a mutated case do.
Result<Measured> measure(Engine& engine, Case c, double seconds, bool fresh) {
  Measured measured;
  const Clock::time_point start = Clock::now();
  while (measured.wall < seconds) {
    for (int i = 0; i < 16; ++i) {
      for (auto& [name, value] : c.inputs) value.fill.seed += fresh ? 1 : 0;
      const Result<CheckResult> result = engine.check(c);
      if (!result.ok()) return result.error();
      if (result->verdict.kind != Verdict::Kind::kPass) {
        return our_error(c.op + ": " + std::string(name_of(result->verdict.kind)) + " " + result->verdict.reason +
                         " in a benchmark");
      }
      measured.inside += static_cast<double>(result->target_nanoseconds) * 1e-9;
      ++measured.checks;
    }
    measured.wall = seconds_since(start);
  }
  return measured;
}

Status run(double seconds, std::string_view only) {
  TargetLoader loader(target_folders());
  const Result<const Target*> builtin = loader.load("builtin");
  if (!builtin.ok()) return builtin.error();
  Comparison comparison;
  comparison.sides = {PathOf{*builtin, "fused"}, PathOf{*builtin, "unfused"}};
  comparison.fallback = *builtin;
  Engine engine(comparison, CheckOptions{});
  std::printf("%-40s %-7s %12s %12s %12s %22s\n", "check", "inputs", "checks/s", "us a check", "us in paths",
              "wall / time in paths");
  for (const Subject& subject : kSubjects) {
    if (std::string_view(subject.name).find(only) == std::string_view::npos) continue;
    const Result<Case> c = parse_case(subject.json);
    if (!c.ok()) return our_error(c.error().what);
    for (const bool fresh : {false, true}) {
      const Result<Measured> warm = measure(engine, *c, seconds / 10, fresh);
      if (!warm.ok()) return warm.error();
      const Result<Measured> m = measure(engine, *c, seconds, fresh);
      if (!m.ok()) return m.error();
      const double checks = static_cast<double>(m->checks);
      std::printf("%-40s %-7s %12.0f %12.2f %12.2f %22.2f\n", subject.name, fresh ? "fresh" : "kept", checks / m->wall,
                  1e6 * m->wall / checks, 1e6 * m->inside / checks, m->wall / m->inside);
      std::fflush(stdout);
    }
  }
  return {};
}

}  // namespace
}  // namespace fusediff

int main(int count, char** arguments) {
  double seconds = 3;
  if (count == 2 || count == 3) {
    const auto given = fusediff::seconds_of("fusediff-bench", arguments[1]);
    if (!given.ok()) {
      std::fprintf(stderr, "fusediff-bench: %s\n", given.error().what.c_str());
      return 2;
    }
    seconds = *given;
  } else if (count > 3) {
    std::fprintf(stderr,
                 "fusediff-bench: takes the seconds for each line of the table, then a part of the names of the lines "
                 "that are wanted\n");
    return 2;
  }
  const fusediff::Status status = fusediff::run(seconds, count == 3 ? arguments[2] : "");
  if (status.ok()) return 0;
  std::fprintf(stderr, "fusediff-bench: %s\n", status.error().what.c_str());
  return status.error().blame == fusediff::Blame::kUser ? 2 : 3;
}
