#include "model/inline_bits.h"

#include <map>
#include <utility>

namespace fusediff {
namespace {

// Calls f on every fill of the case and of its calls that is bits.
template <typename C, typename F>
void for_each_bits(C& c, const F& f) {
  for (auto& [name, input] : c.inputs) {
    if (input.fill.kind == FillKind::kBits) f(input.fill);
    for (auto& patch : input.patches) {
      if (patch.fill.kind == FillKind::kBits) f(patch.fill);
    }
  }
  for (auto& call : c.experiment.calls) for_each_bits(call, f);
}

std::uint64_t size_of_bits(const Fill& fill) { return fill.bits == nullptr ? 0 : fill.bits->size(); }

StoredTensor stored(const Fill& fill, std::string name) {
  const auto count = static_cast<std::int64_t>(fill.bits->size() / size_of(*fill.bits_dtype));
  return {std::move(name), *fill.bits_dtype, {count}, *fill.bits};
}

// Calls name_of(fill, first) on each tensor that is to stand in a file; first: none before it has the same bits.
template <typename F>
void name_each(Case& c, const F& name_of) {
  std::map<std::pair<const void*, DType>, std::string> names;
  for_each_bits(c, [&](Fill& fill) {
    if (fill.bits == nullptr || !fill.bits_dtype) return;
    const auto [at, first] = names.try_emplace({fill.bits.get(), *fill.bits_dtype});
    if (first) at->second = name_of(fill, names.size() - 1);
    fill.bits_file = at->second;
  });
}

}  // namespace

Case with_bits_inline(Case c) {
  for_each_bits(c, [](Fill& fill) {
    fill.bits_file.clear();
    fill.bits_dtype.reset();
  });
  return c;
}

std::uint64_t bytes_of_bits(const Case& c) {
  std::uint64_t bytes = 0;
  for_each_bits(c, [&bytes](const Fill& fill) { bytes += size_of_bits(fill); });
  return bytes;
}

Case with_small_bits_inline(Case c) {
  return bytes_of_bits(c) <= kMostInlineBytes ? with_bits_inline(std::move(c)) : c;
}

BitsBeside with_bits_beside(Case c, const std::string& file) {
  if (bytes_of_bits(c) <= kMostInlineBytes) return {with_bits_inline(std::move(c)), {}};
  BitsBeside beside;
  name_each(c, [&](const Fill& fill, std::size_t number) {
    beside.tensors.push_back(stored(fill, "captured" + std::to_string(number)));
    return file + "#" + beside.tensors.back().name;
  });
  beside.c = std::move(c);
  return beside;
}

BitsBeside with_bits_beside(Case c, const std::function<std::string(const StoredTensor&)>& file_of) {
  if (bytes_of_bits(c) <= kMostInlineBytes) return {with_bits_inline(std::move(c)), {}};
  BitsBeside beside;
  name_each(c, [&](const Fill& fill, std::size_t) {
    beside.tensors.push_back(stored(fill, "captured"));
    return file_of(beside.tensors.back()) + "#captured";
  });
  beside.c = std::move(c);
  return beside;
}

}  // namespace fusediff
