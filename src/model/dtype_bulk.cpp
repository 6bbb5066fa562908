#include <cstring>

#include "model/dtype.h"
#include "model/dtype_convert.h"
#include "model/wide_loop.h"

namespace fusediff {

namespace {

template <typename Stored, typename Convert>
inline void widen_loop(const std::byte* source, double* out, std::size_t n, Convert convert_one) {
  for (std::size_t i = 0; i < n; ++i) {
    Stored stored;
    std::memcpy(&stored, source + i * sizeof(Stored), sizeof(Stored));
    out[i] = convert_one(stored);
  }
}

template <typename Stored, typename Convert>
inline void round_loop(const double* source, std::byte* out, std::size_t n, Convert convert_one) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto stored = static_cast<Stored>(convert_one(source[i]));
    std::memcpy(out + i * sizeof(Stored), &stored, sizeof(Stored));
  }
}

template <typename Stored, typename Convert>
void widen_each(std::span<const std::byte> bytes, std::span<double> values, Convert convert_one) {
  run_wide([=] { widen_loop<Stored>(bytes.data(), values.data(), values.size(), convert_one); });
}

template <typename Stored>
void widen_integers(std::span<const std::byte> bytes, std::span<double> values) {
  widen_each<Stored>(bytes, values, [](Stored stored) { return static_cast<double>(stored); });
}

template <typename Format, typename Stored>
void widen_narrow(std::span<const std::byte> bytes, std::span<double> values) {
  widen_each<Stored>(bytes, values, [](Stored stored) { return convert::Narrow<Format>::value(stored); });
}

template <typename Stored, typename Convert>
void round_each(std::span<const double> values, std::span<std::byte> bytes, Convert convert_one) {
  run_wide([=] { round_loop<Stored>(values.data(), bytes.data(), values.size(), convert_one); });
}

template <typename Stored>
void round_integers(DType dtype, std::span<const double> values, std::span<std::byte> bytes) {
  round_each<Stored>(values, bytes, [dtype](double value) { return round_to_bits(dtype, value); });
}

template <typename Format, typename Stored>
void round_narrow(std::span<const double> values, std::span<std::byte> bytes) {
  round_each<Stored>(values, bytes, [](double value) { return convert::Narrow<Format>::bits(value); });
}

}  // namespace

void widen(DType dtype, std::span<const std::byte> bytes, std::span<double> values) {
  switch (dtype) {
    case DType::kF64:
      if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size_bytes());
      break;
    case DType::kF32:
      widen_each<std::uint32_t>(bytes, values, [](std::uint32_t bits) { return convert::f32_value(bits); });
      break;
    case DType::kF16:
      widen_narrow<convert::F16, std::uint16_t>(bytes, values);
      break;
    case DType::kBF16:
      widen_narrow<convert::BF16, std::uint16_t>(bytes, values);
      break;
    case DType::kF8E4M3FN:
      widen_narrow<convert::F8E4M3FN, std::uint8_t>(bytes, values);
      break;
    case DType::kF8E5M2:
      widen_narrow<convert::F8E5M2, std::uint8_t>(bytes, values);
      break;
    case DType::kI64:
      widen_integers<std::int64_t>(bytes, values);
      break;
    case DType::kI32:
      widen_integers<std::int32_t>(bytes, values);
      break;
    case DType::kI16:
      widen_integers<std::int16_t>(bytes, values);
      break;
    case DType::kI8:
      widen_integers<std::int8_t>(bytes, values);
      break;
    case DType::kU8:
    case DType::kBool:
      widen_integers<std::uint8_t>(bytes, values);
      break;
  }
}

void round_all(DType dtype, std::span<const double> values, std::span<std::byte> bytes) {
  switch (dtype) {
    case DType::kF64:
      if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size_bytes());
      break;
    case DType::kF32:
      round_each<std::uint32_t>(values, bytes, [](double value) { return convert::f32_bits(value); });
      break;
    case DType::kF16:
      round_narrow<convert::F16, std::uint16_t>(values, bytes);
      break;
    case DType::kBF16:
      round_narrow<convert::BF16, std::uint16_t>(values, bytes);
      break;
    case DType::kF8E4M3FN:
      round_narrow<convert::F8E4M3FN, std::uint8_t>(values, bytes);
      break;
    case DType::kF8E5M2:
      round_narrow<convert::F8E5M2, std::uint8_t>(values, bytes);
      break;
    case DType::kI64:
      round_integers<std::uint64_t>(dtype, values, bytes);
      break;
    case DType::kI32:
      round_integers<std::uint32_t>(dtype, values, bytes);
      break;
    case DType::kI16:
      round_integers<std::uint16_t>(dtype, values, bytes);
      break;
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      round_integers<std::uint8_t>(dtype, values, bytes);
      break;
  }
}

}  // namespace fusediff
