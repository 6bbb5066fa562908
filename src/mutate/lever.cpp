#include "mutate/lever.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

#include "model/call.h"
#include "model/values.h"
#include "mutate/ordered.h"
#include "mutate/recipes.h"

namespace fusediff {

std::optional<Ranks> ProbeBudget::look(const Case& c, bool both_sides) {
  if (left_ <= 0) return std::nullopt;
  --left_;
  std::optional<Ranking> ranking = context_.probe(c, rule_, both_sides);
  if (!ranking) return std::nullopt;
  Ranks ranks(*std::move(ranking), smallest_);
  if (!ranks.valid()) return std::nullopt;
  return ranks;
}

std::vector<Lever> Lever::find(const Case& c, MutateContext& context, const DecideRule& rule, const Ranks& ranks) {
  std::vector<Lever> levers;
  const Result<Call> call = bind(c, context.op, context.max_bytes);
  if (!call.ok()) return levers;
  for (const Source& source : drawn_sources(*call)) {
    const Tensor& tensor = *source.tensor;
    const bool by = source.rule->name == rule.by;
    if (!by && source.rule->role != Role::kBias && source.rule->role != Role::kScore) continue;
    if ((!by && !is_float(tensor.dtype)) || tensor.shape.empty() || tensor.shape.back() != ranks.columns()) continue;
    const std::int64_t count = element_count(tensor);
    const bool each_row = count == ranks.rows() * ranks.columns();
    if ((!each_row && count != ranks.columns()) || stored_count(tensor) != count) continue;
    Result<std::vector<std::byte>> bytes = draw_values(c.inputs.at(tensor.name), *source.rule, tensor, *call);
    if (!bytes.ok()) continue;
    Lever lever;
    lever.kind_ = by ? Kind::kRank : source.rule->role == Role::kBias ? Kind::kAdded : Kind::kScore;
    lever.name_ = tensor.name;
    lever.tensor_ = tensor;
    lever.bytes_ = *std::move(bytes);
    lever.each_row_ = each_row;
    lever.columns_ = ranks.columns();
    levers.push_back(std::move(lever));
  }
  std::stable_sort(levers.begin(), levers.end(), [](const Lever& a, const Lever& b) { return a.kind_ < b.kind_; });
  return levers;
}

std::size_t Lever::at(std::int64_t row, std::int64_t column) const {
  return static_cast<std::size_t>(each_row_ ? row * columns_ + column : column);
}

bool Lever::usable(std::int64_t row, std::int64_t column) const {
  return is_finite(dtype(), load_bits(dtype(), bytes_.data() + at(row, column) * size_of(dtype())));
}

std::int64_t Lever::key(std::int64_t row, std::int64_t column) const {
  return ordered_key(dtype(), load_bits(dtype(), bytes_.data() + at(row, column) * size_of(dtype())));
}

double Lever::value(std::int64_t row, std::int64_t column) const { return value_of_key(key(row, column)); }

std::int64_t Lever::key_of_value(double value) const {
  if (!is_float(dtype())) return static_cast<std::int64_t>(value);
  const double most = float_format(dtype()).max_finite;
  return ordered_key(dtype(), round_to_bits(dtype(), std::clamp(value, -most, most)));
}

double Lever::value_of_key(std::int64_t key) const {
  return is_float(dtype()) ? float_value(dtype(), bits_of_key(dtype(), key)) : static_cast<double>(key);
}

void Lever::set(Case& c, std::int64_t row, std::int64_t column, std::int64_t key) {
  if (is_float(dtype())) key = std::clamp(key, -largest_key(dtype()), largest_key(dtype()));
  const std::uint64_t bits = bits_of_key(dtype(), key);
  store_bits(dtype(), bits, bytes_.data() + at(row, column) * size_of(dtype()));
  c.inputs[name_].set[static_cast<std::int64_t>(at(row, column))] = literal_of(dtype(), bits);
}

void Lever::flatten(Case& c, std::int64_t row, std::int64_t key) {
  const std::uint64_t bits = bits_of_key(dtype(), key);
  for (std::int64_t column = 0; column < columns_; ++column) {
    store_bits(dtype(), bits, bytes_.data() + at(row, column) * size_of(dtype()));
  }
  InputValue& value = c.inputs[name_];
  std::erase_if(value.set, [&](const auto& item) { return item.first / columns_ == row; });
  Fill fill;
  fill.kind = FillKind::kConstant;
  fill.constant = literal_of(dtype(), bits);
  value.patches.push_back({row, row, 0, columns_ - 1, fill});
}

std::int64_t miss(const Ranks& ranks, const Aim& aim) {
  return ranks.key(aim.row, aim.column) - ranks.key(aim.row, aim.partner) - aim.gap;
}

Guess guess(const Lever& lever, const Ranks& ranks, const Aim& aim) {
  const std::int64_t target = ranks.key(aim.row, aim.partner) + aim.gap;
  const double rank = ranks.value(aim.row, aim.column);
  const double held = lever.value(aim.row, aim.column);
  Guess result;
  result.key = lever.key_of_value(held + (ranks.value_of_key(target) - rank));
  result.miss = ranks.key_of_value(rank + (lever.value_of_key(result.key) - held)) - target;
  return result;
}

namespace {

// Where the search stands: two points of a function that rises, or falls, with the lever's key.
struct Bracket {
  std::optional<std::int64_t> below, above;  // keys with the rank too low, too high
  std::int64_t reach = 1;                    // the next step while one end is open

  bool closed() const { return below && above && std::abs(*above - *below) <= 1; }
  void note(std::int64_t key, std::int64_t miss) { (miss < 0 ? below : above) = key; }
  // A key between the ends: the wish where it lies there, else the middle; a growing step while an end is open.
  std::int64_t inside(std::int64_t wish, bool bisect) {
    if (below && above) {
      const std::int64_t low = std::min(*below, *above), high = std::max(*below, *above);
      const bool usable = wish > low && wish < high && !bisect;
      return usable ? wish : low + (high - low) / 2;
    }
    return wish;
  }
};

}  // namespace

std::int64_t solve(Case& c, Lever& lever, const Aim& aim, Ranks& ranks, ProbeBudget& probes, int limit) {
  const double sense = ranks.smallest() ? -1 : 1;
  Bracket bracket;
  double slope = 1;
  std::int64_t key = lever.key(aim.row, aim.column);
  std::int64_t left = miss(ranks, aim);
  std::int64_t best_key = key, best_left = left;
  Ranks best = ranks;
  bool rises = true;
  for (int i = 0; i < limit && left != 0; ++i) {
    bracket.note(key, left);
    if (bracket.closed()) break;
    const double rank = ranks.value(aim.row, aim.column);
    const double wanted = ranks.value_of_key(ranks.key(aim.row, aim.partner) + aim.gap);
    const double held = lever.value_of_key(key);
    std::int64_t next = bracket.inside(lever.key_of_value(held + (wanted - rank) / slope), i % 3 == 2);
    if (next == key) {
      const bool up = (left < 0) == ((sense > 0) == rises);
      next = key + (up ? bracket.reach : -bracket.reach);
      bracket.reach *= 4;
    }
    lever.set(c, aim.row, aim.column, next);
    std::optional<Ranks> seen = probes.look(c, false);
    if (!seen || !seen->finite(aim.row, aim.column) || !seen->finite(aim.row, aim.partner)) break;
    const double moved = lever.value_of_key(next) - held;
    const double rose = seen->value(aim.row, aim.column) - rank;
    if (moved != 0 && rose != 0 && std::isfinite(rose / moved)) {
      slope = rose / moved;
      rises = slope > 0;
    }
    key = next;
    ranks = *std::move(seen);
    left = miss(ranks, aim);
    if (std::abs(left) < std::abs(best_left)) {
      best_key = key;
      best_left = left;
      best = ranks;
    }
  }
  lever.set(c, aim.row, aim.column, best_key);
  ranks = std::move(best);
  return best_left;
}

}  // namespace fusediff
