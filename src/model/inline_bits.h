// A case that can leave its folder. Reads and writes no file: the bits are in the case already, only their name stands
// there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/case.h"
#include "model/safetensors.h"

namespace fusediff {

// What of bits a case's JSON may hold: base64 makes a third more of it, and the JSON has a cap of 1 MiB.
inline constexpr std::uint64_t kMostInlineBytes = std::uint64_t{512} << 10;

// The same case with the bits that stood in files beside it ("file.safetensors#name") stated in the case itself.
Case with_bits_inline(Case c);

// Bytes of all bits of the case, in its JSON or in files beside it, those of its calls included.
std::uint64_t bytes_of_bits(const Case& c);

// with_bits_inline() where that makes at most kMostInlineBytes, else the case as it is, its files still named.
Case with_small_bits_inline(Case c);

// A case and the files that it names.
struct BitsBeside {
  Case c;
  std::vector<StoredTensor> tensors;  // write_safetensors() makes the file of them; none: nothing is named
};
// Where the bits are small, with_bits_inline() and no tensors; else all bits whose dtype is known stand in `file`
// (NAME.safetensors), whatever named them before. Others came from a case's JSON and stay in it.
BitsBeside with_bits_beside(Case c, const std::string& file);
// The same with a file a tensor, as the function names them: what cases have in common is then one file.
BitsBeside with_bits_beside(Case c, const std::function<std::string(const StoredTensor&)>& file_of);

}  // namespace fusediff
