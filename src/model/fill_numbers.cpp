#include "model/fill_numbers.h"

#include <array>
#include <bit>
#include <charconv>

#include "model/special_values.h"
#include "model/wide_loop.h"

namespace fusediff {

namespace {

// Cut to 24 significant bits, the last of them one, never larger in magnitude: a product with an integer below 2^29 is
// exact in binary64, and its low bits are seldom zero.
double odd_step(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t sign = bits & (std::uint64_t{1} << 63);
  const std::uint64_t kept = (bits & ~(std::uint64_t{1} << 63)) >> 29;
  if (kept == 0) return 0;
  return std::bit_cast<double>((((kept - 1) | 1) << 29) | sign);
}

struct TwoParts {
  double sum;   // rounded
  double lost;  // exactly what the rounding lost
};

// Knuth's TwoSum.
inline TwoParts two_sum(double a, double b) {
  const double sum = a + b;
  const double virtual_b = sum - a;
  return {sum, (a - (sum - virtual_b)) + (b - virtual_b)};
}

// a + b rounded to odd: cut, and the last bit set when anything was lost. Rounding the result again into a format of at
// most 51 bits is as if there had been one rounding (Boldo and Melquiond 2008).
inline double odd_sum(double a, double b) {
  const auto [sum, lost] = two_sum(a, b);
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  const std::uint64_t toward_zero = (bits ^ std::bit_cast<std::uint64_t>(lost)) >> 63;
  return std::bit_cast<double>(lost != 0 && (bits & 1) == 0 ? bits + 1 - 2 * toward_zero : bits);
}

// a + b + c rounded once to nearest even, by the same authors.
inline double sum_of_three(double a, double b, double c) {
  const auto [high, low] = two_sum(b, c);
  const auto [sum, lost] = two_sum(a, high);
  return sum + odd_sum(lost, low);
}

// What a recipe makes of a hash: the element is origin + (coarse + fine * 2^-24) * step, the fine part in f64 only.
struct Deviate {
  std::int32_t coarse;  // of magnitude below 2^29
  std::int32_t fine;    // of magnitude below 2^26
};

// normal, of a hash h: b = the sum of its 8 bytes; p = h * 0x9E3779B97F4A7C15 mod 2^64; f = the top 16 bits of p;
// coarse = 2 * (65536 b + f - 2041 * 32768) + 1, odd and symmetric about zero (Irwin-Hall of 8, with f between its
// steps); fine = 2 * (bits 12 to 35 of p) + 1 - 2^24; where bits 36 to 47 of p are all zero, one element in 4096, both
// times 4. step = std * 0x1.38f6d9091c643p-25 (one over the standard deviation of coarse) by odd_step, origin = mean.
// So the bulk ends at 4.88 std, outliers at 19.5 std.
inline Deviate normal_deviate(std::uint64_t h) {
  constexpr std::uint64_t kOddBytes = 0x00FF00FF00FF00FFu;
  const std::uint64_t pairs = (h & kOddBytes) + ((h >> 8) & kOddBytes);
  const std::uint64_t sum = (pairs * 0x0001000100010001u) >> 48;
  const std::uint64_t mixed = h * 0x9E3779B97F4A7C15u;
  const std::int32_t centred = static_cast<std::int32_t>((sum << 16) + (mixed >> 48)) - (2041 << 15);
  const std::int32_t scale = (mixed & (std::uint64_t{0xFFF} << 36)) == 0 ? 4 : 1;
  const auto fine = static_cast<std::int32_t>((mixed >> 12) & 0xFFFFFF);
  return {scale * (2 * centred + 1), scale * (2 * fine + 1 - (1 << 24))};
}

// uniform, of a hash h: coarse = h >> 35, fine = the 24 bits below; step = (hi - lo) * 2^-29 by odd_step, origin = lo.
// So it stays below hi before the last rounding.
inline Deviate uniform_deviate(std::uint64_t h) {
  return {static_cast<std::int32_t>(h >> 35), static_cast<std::int32_t>((h >> 11) & 0xFFFFFF)};
}

// Both products are exact: 29 + 24 bits.
template <typename Draw>
inline void draw_f64(const NumberFill& plan, std::uint64_t first, std::span<double> out, Draw deviate) {
  const CounterHash hash = plan.hash;
  const double origin = plan.origin, step = plan.step, fine_step = plan.step * 0x1p-24;
  for (std::size_t i = 0, n = out.size(); i < n; ++i) {
    const Deviate drawn = deviate(hash.at(first + i));
    out[i] = sum_of_three(origin, drawn.coarse * step, drawn.fine * fine_step);
  }
}

template <typename Draw>
inline void draw_to_odd(const NumberFill& plan, std::uint64_t first, std::span<double> out, Draw deviate) {
  const CounterHash hash = plan.hash;
  const double origin = plan.origin, step = plan.step;
  for (std::size_t i = 0, n = out.size(); i < n; ++i) out[i] = deviate(hash.at(first + i)).coarse * step;
  if (origin == 0) return;
  for (double& value : out) value = odd_sum(origin, value);
}

template <typename Draw>
void draw_scaled(const NumberFill& plan, std::int64_t first, std::span<double> out, Draw deviate) {
  const auto counter = static_cast<std::uint64_t>(first);
  if (plan.round_to_odd) {
    run_wide([&plan, counter, out, deviate] { draw_to_odd(plan, counter, out, deviate); });
  } else {
    run_wide([&plan, counter, out, deviate] { draw_f64(plan, counter, out, deviate); });
  }
}

void draw_normal(const NumberFill& plan, std::int64_t first, std::span<double> out) {
  draw_scaled(plan, first, out, [](std::uint64_t h) { return normal_deviate(h); });
}

void draw_uniform(const NumberFill& plan, std::int64_t first, std::span<double> out) {
  draw_scaled(plan, first, out, [](std::uint64_t h) { return uniform_deviate(h); });
}

// Value j of last + 1 equally spaced ones: from + ((to - from) * j) / last in binary64, both ends exact.
double spaced(const NumberFill& plan, std::int64_t j) {
  if (j == 0) return plan.from;
  if (j == plan.last) return plan.to;
  return plan.from + ((plan.to - plan.from) * static_cast<double>(j)) / static_cast<double>(plan.last);
}

// one_hot: row r holds 1 at column hash(r) * columns >> 64, else 0.
void draw_one_hot(const NumberFill& plan, std::int64_t first, std::span<double> out) {
  std::int64_t row = first / plan.columns, column = first % plan.columns;
  const auto hot_of = [&] {
    const auto columns = static_cast<std::uint64_t>(plan.columns);
    return static_cast<std::int64_t>(plan.hash.below(static_cast<std::uint64_t>(row), columns));
  };
  std::int64_t hot = hot_of();
  for (double& value : out) {
    value = column == hot ? 1 : 0;
    if (++column < plan.columns) continue;
    column = 0;
    ++row;
    hot = hot_of();
  }
}

std::string legal_number(std::string_view name, double value) {
  return std::string(name) + " " + shortest(value) + ": legal is a finite number of magnitude at most 1e288";
}

bool in_bounds(double value) { return value >= -kLargestParameter && value <= kLargestParameter; }

// 10^power, correctly rounded. REQUIRES: whole, from -300 to 280.
double power_of_ten(double power) {
  const std::string text = "1e" + std::to_string(static_cast<int>(power));
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Both ends within bounds, so that the difference is finite.
Status plan_span(const Fill& fill, NumberFill& plan) {
  if (!in_bounds(fill.a)) return user_error(legal_number("the low end", fill.a));
  if (!in_bounds(fill.b)) return user_error(legal_number("the high end", fill.b));
  plan.from = fill.a;
  plan.to = fill.b;
  return {};
}

Status plan_normal(double mean, double deviation, NumberFill& plan) {
  constexpr double kOneOverDeviation = 0x1.38f6d9091c643p-25;
  if (!in_bounds(mean)) return user_error(legal_number("mean", mean));
  if (!in_bounds(deviation) || deviation < 0) {
    return user_error("std " + shortest(deviation) + ": legal is a number from 0 to 1e288");
  }
  plan.origin = mean;
  plan.step = odd_step(deviation * kOneOverDeviation);
  return {};
}

// shifted: normal of mean 10^a and std 10^-b.
Status plan_shifted(const Fill& fill, NumberFill& plan) {
  const auto whole = [](double power, double low, double high) {
    return power >= low && power <= high && power == static_cast<double>(static_cast<int>(power));
  };
  if (!whole(fill.a, -300, 280)) {
    return user_error("mean 10^" + shortest(fill.a) + ": legal is a whole exponent from -300 to 280");
  }
  if (!whole(fill.b, -280, 300)) {
    return user_error("spread 10^-" + shortest(fill.b) + ": legal is a whole exponent from -280 to 300");
  }
  return plan_normal(power_of_ten(fill.a), power_of_ten(-fill.b), plan);
}

Status plan_uniform(const Fill& fill, NumberFill& plan) {
  if (Status status = plan_span(fill, plan); !status.ok()) return status;
  if (fill.a > fill.b) {
    return user_error("uniform from " + shortest(fill.a) + " to " + shortest(fill.b) + ": the low end comes first");
  }
  plan.origin = fill.a;
  plan.step = odd_step((fill.b - fill.a) * 0x1p-29);
  return {};
}

Status plan_grid(const Fill& fill, NumberFill& plan) {
  if (fill.count < 1 || fill.count > kMostGridValues) {
    return user_error("count " + std::to_string(fill.count) + ": legal is 1 to " + std::to_string(kMostGridValues));
  }
  plan.last = fill.count - 1;
  return plan_span(fill, plan);
}

}  // namespace

Result<NumberFill> plan_numbers(const Fill& fill, DType dtype, const Block& block) {
  NumberFill plan;
  plan.kind = fill.kind;
  plan.hash = CounterHash(fill.seed);
  plan.columns = block.columns;
  plan.round_to_odd = dtype != DType::kF64;
  Status status;
  switch (fill.kind) {
    case FillKind::kNormal:
    case FillKind::kNegative:
      status = plan_normal(fill.a, fill.b, plan);
      break;
    case FillKind::kShifted:
      status = plan_shifted(fill, plan);
      break;
    case FillKind::kUniform:
      status = plan_uniform(fill, plan);
      break;
    case FillKind::kGrid:
      status = plan_grid(fill, plan);
      break;
    case FillKind::kRamp:
      plan.last = block.count() - 1;
      status = plan_span(fill, plan);
      break;
    case FillKind::kSpecial:
    case FillKind::kFiniteSpecial:
      plan.picks = special_values(dtype, fill.kind == FillKind::kFiniteSpecial);
      break;
    default:
      break;
  }
  if (!status.ok()) return status.error();
  return plan;
}

void draw_numbers(const NumberFill& plan, std::int64_t first, std::span<double> out) {
  const auto counter = [first](std::size_t i) { return static_cast<std::uint64_t>(first) + i; };
  switch (plan.kind) {
    case FillKind::kNegative:  // minus the magnitude of normal
      draw_normal(plan, first, out);
      for (double& value : out) {
        value = std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) | (std::uint64_t{1} << 63));
      }
      break;
    case FillKind::kUniform:
      draw_uniform(plan, first, out);
      break;
    case FillKind::kGrid:  // value hash * count >> 64
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::uint64_t j = plan.hash.below(counter(i), static_cast<std::uint64_t>(plan.last) + 1);
        out[i] = spaced(plan, static_cast<std::int64_t>(j));
      }
      break;
    case FillKind::kRamp:  // value i of as many as there are elements in the block
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = spaced(plan, static_cast<std::int64_t>(counter(i)));
      break;
    case FillKind::kOneHot:
      draw_one_hot(plan, first, out);
      break;
    case FillKind::kSpecial:  // the list of special_values.h at hash * length >> 64
    case FillKind::kFiniteSpecial:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = plan.picks[plan.hash.below(counter(i), plan.picks.size())];
      break;
    default:
      draw_normal(plan, first, out);
      break;
  }
}

}  // namespace fusediff
