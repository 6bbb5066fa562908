// The safetensors format (huggingface/safetensors, format of 2022): 8 bytes of little-endian header length, a JSON
// header, raw little-endian tensors. Reads one tensor without the others; writes whole files. What the bytes mean for a
// call is not known here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/dtype.h"

namespace fusediff {

struct StoredTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;  // dense, row-major
};

// Where a tensor stands in a file.
struct StoredSpan {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0;  // from the beginning of the file
  std::uint64_t bytes = 0;
};

// The tensors of a regular file, in the order of the header, without their bytes. Errors as of read_safetensor().
Result<std::vector<StoredSpan>> list_safetensors(const std::filesystem::path& file);
// One tensor of a regular file. Everything is checked against the file's size before it is allocated; a file that is
// not safetensors, a dtype that fusediff does not know and a name that is not there are the user's errors.
Result<StoredTensor> read_safetensor(const std::filesystem::path& file, std::string_view name);
// All tensors of a file's text, in the order of the header.
Result<std::vector<StoredTensor>> parse_safetensors(std::string_view file);

// What stands in front of the tensors' bytes, which follow in the same order without gaps.
std::string safetensors_front(std::span<const StoredSpan> tensors);
// The text of a file. REQUIRES: names differ and none is "__metadata__"; bytes fit shape and dtype.
std::string write_safetensors(std::span<const StoredTensor> tensors);

}  // namespace fusediff
