#include "model/special_values.h"

#include <algorithm>
#include <bit>

namespace fusediff {

namespace {

// Where exp leaves a format: the natural logarithms of max_finite and of half the least denormal.
struct ExpLimits {
  DType dtype;
  double high;
  double low;
};
constexpr std::array kExpLimits = {
    ExpLimits{DType::kF64, 709.782712893384, -745.1332191019412},
    ExpLimits{DType::kF32, 88.72283905206835, -103.97207708399179},
    ExpLimits{DType::kF16, 11.089866488461016, -17.328679513998633},
    ExpLimits{DType::kBF16, 88.71892521235186, -92.8817221950326727},
    ExpLimits{DType::kF8E4M3FN, 6.104793232414985, -6.931471805599453},
    ExpLimits{DType::kF8E5M2, 10.956823496334602, -11.783502069519071},
};

class List {
 public:
  explicit List(DType dtype) : dtype_(dtype) {}

  void add_bits(std::uint64_t bits) {
    if (std::find(seen_.begin(), seen_.end(), bits) != seen_.end()) return;
    seen_.push_back(bits);
    values_.push_back(is_float(dtype_) ? float_value(dtype_, bits) : static_cast<double>(integer_value(dtype_, bits)));
  }
  void add(double value) { add_finite(round_to_bits(dtype_, value)); }
  void add_both_signs(double value) {
    add(value);
    add(-value);
  }
  void add_with_neighbours(double value) {
    const std::uint64_t bits = round_to_bits(dtype_, value);
    for (const int step : {0, -1, 1}) add_finite(step_bits(dtype_, bits, step));
  }
  std::vector<double> take() { return std::move(values_); }

 private:
  void add_finite(std::uint64_t bits) {
    if (is_finite(dtype_, bits)) add_bits(bits);
  }
  DType dtype_;
  std::vector<std::uint64_t> seen_;
  std::vector<double> values_;
};

void add_float_values(DType dtype, List& list) {
  const FloatFormat& format = float_format(dtype);
  for (const double value :
       {0.0, format.min_denormal, format.min_normal - format.min_denormal, format.min_normal, format.max_finite,
        format.max_finite - ulp_at(dtype, format.max_finite), format.max_finite / 2, 1.0,
        1.0 + 2 * format.unit_roundoff, 1.0 - format.unit_roundoff, 17.0}) {
    list.add_both_signs(value);
  }
  for (const ExpLimits& limits : kExpLimits) {
    if (limits.dtype != dtype && limits.dtype != DType::kF32) continue;
    list.add_with_neighbours(limits.high);
    list.add_with_neighbours(-limits.high);
    list.add_with_neighbours(limits.low);
  }
}

}  // namespace

std::vector<double> special_values(DType dtype, bool finite_only) {
  List list(dtype);
  if (is_float(dtype)) {
    add_float_values(dtype, list);
    if (finite_only) return list.take();
    const std::uint64_t sign = round_to_bits(dtype, -0.0);
    const std::uint64_t infinity = round_to_bits(dtype, std::bit_cast<double>(std::uint64_t{0x7FF} << 52));
    const std::uint64_t nan = round_to_bits(dtype, std::bit_cast<double>(std::uint64_t{0xFFF} << 51));
    for (const std::uint64_t bits : {infinity, infinity | sign, nan, nan | sign}) list.add_bits(bits);
    return list.take();
  }
  const IntegerRange range = integer_range(dtype);
  const auto low = static_cast<double>(range.low), high = static_cast<double>(range.high);
  for (const double value : {0.0, 1.0, -1.0, 2.0, low, high, low / 2, high / 2}) list.add(value);
  return list.take();
}

}  // namespace fusediff
