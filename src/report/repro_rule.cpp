#include "report/repro_rule.h"

#include <regex>

namespace fusediff {
namespace {

using Json = nlohmann::ordered_json;

std::optional<std::smatch> found(const std::string& text, const char* pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? std::optional(match) : std::nullopt;
}

std::int64_t whole(const std::string& text) { return std::strtoll(text.c_str(), nullptr, 10); }
double real(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

}  // namespace

Json broken_rule(const std::string& what) {
  if (const auto m = found(what, "stands twice in row (\\d+), columns (\\d+) and (\\d+)"))
    return {{"kind", "distinct"}, {"row", whole((*m)[1])}, {"twice", {whole((*m)[2]), whole((*m)[3])}}};
  if (const auto m = found(what, "in row (\\d+), column \\d+, outside (\\S+)\\.\\.(\\S+)$"))
    return {{"kind", "range"}, {"row", whole((*m)[1])}, {"low", real((*m)[2])}, {"high", real((*m)[3])}};
  if (const auto m = found(what, "in row (\\d+), column \\d+ although every input is finite"))
    return {{"kind", "finite"}, {"row", whole((*m)[1])}};
  if (const auto m = found(what, "row (\\d+) sums to \\S+, not to (\\S+) within (\\S+)$"))
    return {{"kind", "row_sums"}, {"row", whole((*m)[1])}, {"sum", real((*m)[2])}, {"within", real((*m)[3])}};
  if (const auto m = found(what, "in row (\\d+), column \\d+: no permutation of"))
    return {{"kind", "permutation"}, {"row", whole((*m)[1])}};
  return {};
}

std::optional<std::uint64_t> memory_cap(const std::string& what) {
  const auto m = found(what, "the cap is (\\d+)");
  return m ? std::optional(std::strtoull((*m)[1].str().c_str(), nullptr, 10)) : std::nullopt;
}

}  // namespace fusediff
