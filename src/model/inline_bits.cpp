#include "model/inline_bits.h"

#include <map>
#include <utility>

namespace fusediff {
namespace {

// Calls f on every fill of the case and of its calls that stands in a file.
template <typename C, typename F>
void for_each_beside(C& c, const F& f) {
  for (auto& [name, input] : c.inputs) {
    if (!input.fill.bits_file.empty()) f(input.fill);
    for (auto& patch : input.patches) {
      if (!patch.fill.bits_file.empty()) f(patch.fill);
    }
  }
  for (auto& call : c.experiment.calls) for_each_beside(call, f);
}

std::uint64_t size_of_bits(const Fill& fill) { return fill.bits == nullptr ? 0 : fill.bits->size(); }

}  // namespace

Case with_bits_inline(Case c) {
  for_each_beside(c, [](Fill& fill) {
    fill.bits_file.clear();
    fill.bits_dtype.reset();
  });
  return c;
}

std::uint64_t bytes_beside(const Case& c) {
  std::uint64_t bytes = 0;
  for_each_beside(c, [&bytes](const Fill& fill) { bytes += size_of_bits(fill); });
  return bytes;
}

Case with_small_bits_inline(Case c) { return bytes_beside(c) <= kMostInlineBytes ? with_bits_inline(std::move(c)) : c; }

BitsBeside with_bits_beside(Case c, const std::string& file) {
  if (bytes_beside(c) <= kMostInlineBytes) return {with_bits_inline(std::move(c)), {}};
  BitsBeside beside;
  std::map<std::string, std::string> names;  // as it was written -> in the file
  for_each_beside(c, [&](Fill& fill) {
    const auto [at, added] = names.try_emplace(fill.bits_file, "captured" + std::to_string(names.size()));
    if (added && fill.bits != nullptr && fill.bits_dtype) {
      const auto count = static_cast<std::int64_t>(fill.bits->size() / size_of(*fill.bits_dtype));
      beside.tensors.push_back({at->second, *fill.bits_dtype, {count}, *fill.bits});
    }
    fill.bits_file = file + "#" + at->second;
  });
  beside.c = std::move(c);
  return beside;
}

}  // namespace fusediff
