// Tensors as another program left them in a file: names, shapes and element types first, bytes later and in pieces, so
// that no more than a piece is in memory. What they mean for an operator is not known here.
//
//   .npy          NumPy format 1.0 to 3.0 (numpy.lib.format)
//   .npz          a zip archive of .npy members, stored or deflated
//   .safetensors  model/safetensors.h
//
// Every size is checked against the file, and every name for what has no business in one, before anything is
// allocated; what is wrong is one line with the file, and where it is one member's, with that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/dtype.h"

namespace fusediff {

// The element type that a file states. Raw: it says a width and not what the bytes mean.
struct ElementType {
  std::optional<DType> dtype;  // nothing: raw, or one that fusediff has not
  std::size_t size = 0;        // bytes; 0: no plain elements
  bool raw = false;
  bool swapped = false;  // big-endian
  std::string text;      // as the file says it
};

struct CapturedTensor {
  std::string name;
  ElementType type;
  std::vector<std::int64_t> shape;
  bool fortran = false;          // first index fastest
  std::string problem;           // why it cannot be used, "": it can
  std::vector<std::byte> value;  // of one element, rank 0: read at once

  std::uint64_t elements() const;  // fits: the reader has checked it
  std::uint64_t bytes() const { return elements() * type.size; }
};

// Takes a piece of one tensor's bytes, in the order of the file.
using PieceSink = std::function<Status(std::span<const std::byte> piece)>;
// Where the tensor of that index goes; an empty function: it is passed over.
using SinkOf = std::function<PieceSink(std::size_t index)>;

// One kind of file.
struct CaptureFormat {
  std::string_view name;
  std::string_view ending;
  bool (*is)(std::string_view first_bytes);
  Result<std::vector<CapturedTensor>> (*list)(const std::filesystem::path& file);
  // `tensors`: what list() said; a file that says something else by now is an error. In any order of the tensors.
  Status (*read)(const std::filesystem::path& file, std::span<const CapturedTensor> tensors, const SinkOf& sink_of);
};
std::span<const CaptureFormat> capture_formats();

// The pieces that a reader hands out are at most this large.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
// Tensors of one file.
inline constexpr std::size_t kMostTensors = 1 << 20;

// "": the name may stand; else what is wrong with it (control characters, a part "..", no beginning).
std::string wrong_in_name(std::string_view name);

}  // namespace fusediff
