#include "oracle/vacuous.h"

namespace fusediff {
namespace {

// Looks no further than it must: `enough` telling elements decide.
std::int64_t telling_elements(DType dtype, const std::vector<std::byte>& bytes, std::int64_t enough) {
  const std::size_t size = size_of(dtype);
  std::int64_t telling = 0;
  for (std::size_t at = 0; at < bytes.size() && telling < enough; at += size) {
    const std::uint64_t bits = load_bits(dtype, bytes.data() + at);
    telling += static_cast<std::int64_t>(!is_zero(dtype, bits) && !is_nan(dtype, bits));
  }
  return telling;
}

}  // namespace

std::string judge_vacuous(const Call& call, const Execution& execution) {
  std::int64_t elements = 0;
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    elements += static_cast<std::int64_t>(execution.outputs[o].size() / size_of(call.outputs[o].dtype));
  }
  if (elements == 0) return "only empty outputs";
  std::int64_t missing = std::max<std::int64_t>(1, elements / kTellingShare);
  for (std::size_t o = 0; o < call.outputs.size() && missing > 0; ++o) {
    missing -= telling_elements(call.outputs[o].dtype, execution.outputs[o], missing);
  }
  return missing > 0 ? "nearly all zeros or NaN" : "";
}

}  // namespace fusediff
