#include "engine/minimize.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "engine/explicit_case.h"
#include "engine/resized.h"
#include "engine/simpler_values.h"
#include "model/call.h"

namespace fusediff {
namespace {

using Clock = std::chrono::steady_clock;

// Coarse to fine until nothing changes. Every candidate must keep the signature; none is taken on trust.
class Minimizer {
 public:
  Minimizer(Engine& engine, const MinimizeOptions& options, const Case& original, Finding finding, const Operator& op,
            std::uint64_t max_bytes)
      : engine_(engine),
        options_(options),
        op_(op),
        max_bytes_(max_bytes),
        wanted_(signature_of(finding)),
        end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds))) {
    best_ = original;
    finding_ = std::move(finding);
  }

  Minimized run() {
    const Case original = best_;
    const Finding finding = finding_;
    shrink();
    // Known findings come back unexplained, which is fast; the last word has a check that explains anew. Where it
    // disagrees, every candidate is explained.
    if (!confirm()) {
      best_ = original;
      finding_ = finding;
      anew_ = true;
      shrink();
    }
    Minimized result;
    if (time_left()) result.notes = neighbours();
    result.finished = time_left();
    result.smallest = best_;
    result.finding = finding_;
    result.checks = checks_;
    return result;
  }

 private:
  bool confirm() {
    anew_ = true;
    const std::optional<Finding> finding = finding_of(best_);
    anew_ = false;
    if (finding) finding_ = *finding;
    return finding.has_value();
  }

  void shrink() {
    bool changed = true;
    while (changed && time_left()) {
      changed = false;
      changed |= step("outputs apart and dense layouts", &Minimizer::simplify_layout);
      changed |= step("dims", &Minimizer::shrink_dims);
      changed |= step("attributes", &Minimizer::default_attributes);
      changed |= step("optional inputs", &Minimizer::drop_inputs);
      changed |= step("recipes", &Minimizer::simplify_recipes);
      if (const std::optional<Case> explicit_case = written_out(best_, op_, max_bytes_)) {
        const Case before = best_;
        if (keeps(*explicit_case)) {
          changed |= step("rows and columns", &Minimizer::drop_slices);
          changed |= step("values", &Minimizer::shrink_values);
        }
        take_shorter(before);
      }
    }
  }

  bool time_left() const { return Clock::now() < end_; }

  // A run that was cut off may hold locks that every later run waits for. A run that touched a guard page or died of a
  // signal has left nothing worse than a leak, as a rule; the bundle is replayed in a fresh process before anyone
  // believes it.
  bool is_stuck() const { return finding_.cls == FindingClass::kHang && engine_.tainted(); }

  bool step(const char* name, bool (Minimizer::*apply)()) {
    if (options_.progress) options_.progress(name, checks_);
    bool any = false;
    while (time_left() && (this->*apply)()) any = true;
    return any;
  }

  std::optional<Finding> finding_of(const Case& c) {
    int kept = 0;
    std::optional<Finding> last;
    for (int i = 0; i < options_.tries && kept < options_.needed; ++i) {
      if (is_stuck()) return std::nullopt;
      ++checks_;
      const Result<CheckResult> result = engine_.check(c, anew_);
      if (!result.ok() || !result->verdict.finding || signature_of(*result->verdict.finding) != wanted_) continue;
      ++kept;
      last = result->verdict.finding;
    }
    return kept >= options_.needed ? last : std::nullopt;
  }

  // Takes the candidate when it still shows the same signature.
  bool keeps(const Case& candidate) {
    if (!time_left() || candidate == best_) return candidate == best_;
    std::optional<Finding> finding = finding_of(candidate);
    if (!finding) return false;
    best_ = candidate;
    finding_ = std::move(*finding);
    return true;
  }

  // After work on raw bits: the shortest spelling of the same bytes, or the recipe as it was when nothing came of it.
  void take_shorter(const Case& before) {
    const Case shorter = in_short(best_, op_, max_bytes_);
    const std::optional<Case> bytes_before = written_out(before, op_, max_bytes_);
    if (bytes_before && *bytes_before == best_ && has_raw_bits(shorter)) {
      best_ = before;
      return;
    }
    best_ = shorter;  // the same bytes: the finding stands
  }

  static bool has_raw_bits(const Case& c) {
    return std::any_of(c.inputs.begin(), c.inputs.end(),
                       [](const auto& input) { return input.second.fill.kind == FillKind::kBits; });
  }

  bool simplify_layout() {
    if (!best_.layout.empty()) {
      Case plain = best_;
      plain.layout.clear();
      if (keeps(plain)) return true;
    }
    for (const auto& [name, layout] : Case(best_).layout) {
      Case candidate = best_;
      candidate.layout.erase(name);
      if (keeps(candidate)) return true;
      for (const bool drop_stride : {true, false}) {
        candidate = best_;
        LayoutChoice& choice = candidate.layout[name];
        drop_stride ? choice.stride.reset() : void(choice.offset = 0);
        if (!(candidate == best_) && keeps(candidate)) return true;
      }
    }
    if (best_.unwanted.empty()) return false;
    Case candidate = best_;
    candidate.unwanted.clear();
    return keeps(candidate);
  }

  static std::vector<std::int64_t> smaller_sizes(std::int64_t n) {
    std::set<std::int64_t> sizes = {0, 1, 2, 3, 4, n / 8, n / 4, n / 2, n - n / 4, n - 1};
    sizes.erase(sizes.lower_bound(n), sizes.end());
    sizes.erase(sizes.begin(), sizes.lower_bound(0));
    return {sizes.begin(), sizes.end()};
  }

  bool shrink_dims() {
    for (const DimRule& dim : op_.dims) {
      for (const std::int64_t size : smaller_sizes(best_.dims[dim.name])) {
        if (keeps(resized(best_, op_, {{dim.name, size}}, max_bytes_))) return true;
      }
    }
    // Dims that a rule ties together: both to the same fraction, or both down by one.
    for (const DimRule& first : op_.dims) {
      for (const DimRule& second : op_.dims) {
        if (first.name >= second.name) continue;
        const std::int64_t a = best_.dims[first.name], b = best_.dims[second.name];
        if (a < 2 || b < 2) continue;
        for (const auto& [x, y] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {a / 2, b / 2}, {a - 1, b - 1}}) {
          if (keeps(resized(best_, op_, {{first.name, x}, {second.name, y}}, max_bytes_))) return true;
        }
      }
    }
    return false;
  }

  bool default_attributes() {
    for (const auto& [name, value] : Case(best_).attrs) {
      const AttrRule* rule = op_.attr(name);
      if (rule == nullptr || !rule->standard || value == *rule->standard) continue;
      Case candidate = best_;
      candidate.attrs.erase(name);
      if (keeps(candidate)) return true;
    }
    return false;
  }

  bool drop_inputs() {
    for (const InputRule& rule : op_.inputs) {
      if (!rule.optional || rule.condition || !best_.inputs.contains(rule.name)) continue;
      Case candidate = best_;
      candidate.inputs.erase(rule.name);
      candidate.layout.erase(rule.name);
      if (keeps(candidate)) return true;
    }
    return false;
  }

  bool simplify_recipes() {
    for (const auto& [name, value] : Case(best_).inputs) {
      if (!value.patches.empty() || !value.set.empty()) {
        Case candidate = best_;
        candidate.inputs[name].patches.clear();
        candidate.inputs[name].set.clear();
        if (keeps(candidate)) return true;
        candidate = best_;
        candidate.inputs[name].patches.clear();
        if (!(candidate == best_) && keeps(candidate)) return true;
      }
      if (value.fill.kind == FillKind::kConstant || value.fill.kind == FillKind::kBits) continue;
      const std::optional<DType> chosen =
          best_.dtypes.contains(name) ? std::optional(best_.dtypes.at(name)) : std::nullopt;
      for (const std::int64_t constant : {0, 1}) {
        Case candidate = best_;
        Fill fill;
        const bool integer = chosen ? !is_float(*chosen) : is_integer_input(name);
        fill.constant.kind = integer ? Literal::Kind::kInteger : Literal::Kind::kReal;
        fill.constant.integer = constant;
        fill.constant.real = static_cast<double>(constant);
        candidate.inputs[name].fill = fill;
        if (keeps(candidate)) return true;
      }
    }
    return false;
  }

  bool is_integer_input(const std::string& name) const {
    const InputRule* rule = op_.source(name);
    return rule != nullptr && rule->dtype.choices.size() == 1 && !is_float(rule->dtype.choices[0]);
  }

  bool drop_slices() {
    for (const DimRule& dim : op_.dims) {
      const std::int64_t n = best_.dims[dim.name];
      for (std::int64_t count = std::max<std::int64_t>(1, n / 2); count >= 1 && n > 0; count /= 2) {
        for (std::int64_t first = 0; first + count <= n; first += count) {
          if (drop_slice(dim.name, first, count)) return true;
          if (!time_left()) return false;
        }
      }
    }
    return false;
  }

  bool drop_slice(const std::string& dim, std::int64_t first, std::int64_t count) {
    const auto try_with = [&](const std::string& decreased) {
      const std::optional<Case> candidate = without_slices(best_, op_, dim, first, count, decreased, max_bytes_);
      return candidate && keeps(*candidate);
    };
    if (try_with("")) return true;
    for (const DimRule& other : op_.dims) {  // a pick dropped together with the slot that held it
      if (other.name != dim && best_.dims[other.name] > count && try_with(other.name)) return true;
    }
    return false;
  }

  bool shrink_values() {
    bool any = false;
    const Result<Call> call = bind(best_, op_, max_bytes_);
    if (!call.ok()) return false;
    for (const std::vector<Tensor>* tensors : {&call->inputs, &call->givens}) {
      for (const Tensor& tensor : *tensors) {
        if (!best_.inputs.contains(tensor.name)) continue;
        const std::size_t n = best_.inputs[tensor.name].fill.bits->size() / size_of(tensor.dtype);
        if (n > 0) any |= shrink_range(tensor, 0, n);
      }
    }
    return any;
  }

  // Simplest first. A value is never made longer: what is 0 stays, what is 1 may become 0.
  bool shrink_range(const Tensor& tensor, std::size_t first, std::size_t count) {
    if (!time_left()) return false;
    bool any = false;
    for (int level = 0; level < kValueLevels; ++level) {
      const std::optional<Case> candidate = with_simpler_values(best_, tensor, first, count, level);
      if (!candidate) {
        if (level == 0) return any;  // all zero already
        continue;
      }
      if (keeps(*candidate)) return true;
      if (count > 1 && level == 1) break;
    }
    if (count == 1) return any;
    const std::size_t half = count / 2;
    any |= shrink_range(tensor, first, half);
    any |= shrink_range(tensor, first + half, count - half);
    return any;
  }

  // "passes with E = 1, fails with E = 2": what the sizes below do.
  std::vector<std::string> neighbours() {
    std::vector<std::string> notes;
    for (const DimRule& dim : op_.dims) {
      const std::int64_t size = best_.dims[dim.name];
      for (const std::int64_t other : {size - 1, size + 1}) {
        if (other < 0 || !time_left() || is_stuck()) continue;
        ++checks_;
        const Result<CheckResult> result = engine_.check(resized(best_, op_, {{dim.name, other}}, max_bytes_));
        const bool passes = result.ok() && (result->verdict.kind == Verdict::Kind::kPass ||
                                            result->verdict.kind == Verdict::Kind::kVacuous);
        if (!passes) continue;
        notes.push_back("passes with " + dim.name + " = " + std::to_string(other) + ", fails with " + dim.name + " = " +
                        std::to_string(size));
      }
    }
    return notes;
  }

  Engine& engine_;
  const MinimizeOptions& options_;
  const Operator& op_;
  std::uint64_t max_bytes_;
  std::string wanted_;
  Clock::time_point end_;
  Case best_;
  Finding finding_;
  int checks_ = 0;
  bool anew_ = false;
};

}  // namespace

Result<Minimized> minimize(Engine& engine, const Case& original, const MinimizeOptions& options) {
  int checks = 0;
  std::optional<Finding> finding;
  while (!finding) {
    const Result<CheckResult> first = engine.check(original, /*anew=*/true);
    if (!first.ok()) return first.error();
    finding = first->verdict.finding;
    if (++checks < options.tries || finding) continue;
    return user_error("nothing to minimise: the case gives " + std::string(name_of(first->verdict.kind)) +
                      ", not a finding");
  }
  const Operator* op = engine.find(original.op);
  Minimizer minimizer(engine, options, original, *std::move(finding), *op, engine.max_bytes());
  Minimized result = minimizer.run();
  result.checks += checks;
  return result;
}

}  // namespace fusediff
