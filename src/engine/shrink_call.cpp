#include "engine/shrink_call.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "engine/explicit_case.h"
#include "engine/resized.h"
#include "engine/simpler_values.h"
#include "model/call.h"

namespace fusediff {
namespace {

constexpr std::int64_t kManyRows = 16;  // fewer are dropped one by one

bool has_raw_bits(const Case& c) {
  return std::any_of(c.inputs.begin(), c.inputs.end(),
                     [](const auto& input) { return input.second.fill.kind == FillKind::kBits; });
}

}  // namespace

std::vector<std::int64_t> smaller_sizes(std::int64_t n, std::int64_t least) {
  std::set<std::int64_t> sizes = {least, 0, 1, 2, 3, 4, n / 8, n / 4, n / 2, n - n / 4, n - 1};
  sizes.erase(sizes.lower_bound(n), sizes.end());
  sizes.erase(sizes.begin(), sizes.lower_bound(least));
  return {sizes.begin(), sizes.end()};
}

bool CallShrinker::shrink(Case& call) {
  best_ = call;
  bool changed = false;
  changed |= step("outputs apart and dense layouts", &CallShrinker::simplify_layout);
  changed |= step("blocks of rows", &CallShrinker::drop_blocks);
  changed |= step("dims", &CallShrinker::shrink_dims);
  changed |= step("attributes", &CallShrinker::default_attributes);
  changed |= step("optional inputs", &CallShrinker::drop_inputs);
  changed |= step("recipes", &CallShrinker::simplify_recipes);
  changed |= written_out_steps(true);
  call = best_;
  return changed;
}

bool CallShrinker::shrink_values_of(Case& call) {
  best_ = call;
  bool changed = step("recipes", &CallShrinker::simplify_recipes);
  changed |= written_out_steps(false);
  call = best_;
  return changed;
}

bool CallShrinker::written_out_steps(bool slices) {
  const std::optional<Case> explicit_case = written_out(best_, op_, limits_.max_bytes);
  if (!explicit_case) return false;
  bool changed = false;
  const Case before = best_;
  if (keeps(*explicit_case)) {
    if (slices) changed |= step("rows and columns", &CallShrinker::drop_slices);
    changed |= step("values", &CallShrinker::shrink_values);
  }
  take_shorter(before);
  return changed;
}

bool CallShrinker::step(const char* name, bool (CallShrinker::*apply)()) {
  limits_.progress(name);
  bool any = false;
  while (time_left() && (this->*apply)()) any = true;
  return any;
}

bool CallShrinker::keeps(const Case& candidate) {
  if (candidate == best_) return true;
  if (!time_left() || !keeps_(candidate)) return false;
  best_ = candidate;
  return true;
}

// After work on raw bits: the shortest spelling of the same bytes, or the recipe as it was when nothing came of it.
void CallShrinker::take_shorter(const Case& before) {
  const Case shorter = in_short(best_, op_, limits_.max_bytes);
  const std::optional<Case> bytes_before = written_out(before, op_, limits_.max_bytes);
  if (bytes_before && *bytes_before == best_ && has_raw_bits(shorter)) {
    best_ = before;
    return;
  }
  best_ = shorter;  // the same bytes: the finding stands
}

bool CallShrinker::simplify_layout() {
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

bool CallShrinker::shrink_dims() {
  for (const DimRule& dim : op_.dims) {
    for (const std::int64_t size : smaller_sizes(best_.dims[dim.name], 0)) {
      if (keeps(resized(best_, op_, {{dim.name, size}}, limits_.max_bytes))) return true;
    }
  }
  // Dims that a rule ties together: all, or two of them, to the same fraction, or down by one.
  const auto all_by = [&](const std::function<std::int64_t(std::int64_t)>& smaller) {
    std::map<std::string, std::int64_t> sizes;
    for (const DimRule& dim : op_.dims) {
      if (best_.dims[dim.name] > 1) sizes[dim.name] = smaller(best_.dims[dim.name]);
    }
    return sizes.size() > 2 && keeps(resized(best_, op_, sizes, limits_.max_bytes));
  };
  if (all_by([](std::int64_t) { return 1; }) || all_by([](std::int64_t n) { return n / 2; }) ||
      all_by([](std::int64_t n) { return n - 1; })) {
    return true;
  }
  for (const DimRule& first : op_.dims) {
    for (const DimRule& second : op_.dims) {
      if (first.name >= second.name) continue;
      const std::int64_t a = best_.dims[first.name], b = best_.dims[second.name];
      if (a < 2 || b < 2) continue;
      for (const auto& [x, y] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {a / 2, b / 2}, {a - 1, b - 1}}) {
        if (keeps(resized(best_, op_, {{first.name, x}, {second.name, y}}, limits_.max_bytes))) return true;
      }
    }
  }
  return false;
}

// Of captured values, of which a few rows among thousands matter: by halves, before anything is tried row by row.
bool CallShrinker::drop_blocks() {
  if (!op_.rows || !has_raw_bits(best_)) return false;
  const std::string& dim = op_.rows->dim;
  const std::int64_t n = best_.dims[dim];
  const std::optional<Case> whole = n < kManyRows ? std::nullopt : written_out(best_, op_, limits_.max_bytes);
  if (!whole) return false;
  for (const std::int64_t count : {n / 2, n / 4, n / 8}) {
    for (std::int64_t first = 0; first < n; first += count) {
      const std::optional<Case> rest =
          without_slices(*whole, op_, dim, first, std::min(count, n - first), "", limits_.max_bytes);
      if (rest && keeps(*rest)) return true;
      if (!time_left()) return false;
    }
  }
  return false;
}

bool CallShrinker::default_attributes() {
  // What is the default need not be said; the call is the same.
  std::erase_if(best_.attrs, [&](const auto& attr) {
    const AttrRule* rule = op_.attr(attr.first);
    return rule != nullptr && rule->standard && attr.second == *rule->standard;
  });
  for (const auto& [name, unused] : Case(best_).attrs) {
    const AttrRule* rule = op_.attr(name);
    if (rule == nullptr || !rule->standard) continue;
    Case candidate = best_;
    candidate.attrs.erase(name);
    if (keeps(candidate)) return true;
  }
  return false;
}

bool CallShrinker::drop_inputs() {
  for (const InputRule& rule : op_.inputs) {
    if (!rule.optional || rule.condition || !best_.inputs.contains(rule.name)) continue;
    Case candidate = best_;
    candidate.inputs.erase(rule.name);
    candidate.layout.erase(rule.name);
    if (keeps(candidate)) return true;
  }
  return false;
}

bool CallShrinker::simplify_recipes() {
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
    const auto chosen = best_.dtypes.find(name);
    const bool integer = chosen != best_.dtypes.end() ? !is_float(chosen->second) : is_integer_input(name);
    for (const std::int64_t constant : {0, 1}) {
      Case candidate = best_;
      Fill fill;
      fill.constant.kind = integer ? Literal::Kind::kInteger : Literal::Kind::kReal;
      fill.constant.integer = constant;
      fill.constant.real = static_cast<double>(constant);
      candidate.inputs[name].fill = fill;
      if (keeps(candidate)) return true;
    }
  }
  return false;
}

bool CallShrinker::is_integer_input(const std::string& name) const {
  const InputRule* rule = op_.source(name);
  return rule != nullptr && rule->dtype.choices.size() == 1 && !is_float(rule->dtype.choices[0]);
}

bool CallShrinker::drop_slices() {
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

bool CallShrinker::drop_slice(const std::string& dim, std::int64_t first, std::int64_t count) {
  const auto try_with = [&](const std::string& decreased) {
    const std::optional<Case> candidate = without_slices(best_, op_, dim, first, count, decreased, limits_.max_bytes);
    return candidate && keeps(*candidate);
  };
  if (try_with("")) return true;
  for (const DimRule& other : op_.dims) {  // a pick dropped together with the slot that held it
    if (other.name != dim && best_.dims[other.name] > count && try_with(other.name)) return true;
  }
  return false;
}

bool CallShrinker::shrink_values() {
  bool any = false;
  const Result<Call> call = bind(best_, op_, limits_.max_bytes);
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
bool CallShrinker::shrink_range(const Tensor& tensor, std::size_t first, std::size_t count) {
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

}  // namespace fusediff
