// One tensor on its way from a captured file into a safetensors file: order, byte order, slice and element type, a
// piece at a time. Only a tensor in Fortran order is held whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "import/captured.h"
#include "model/dtype.h"

namespace fusediff {

// What becomes of a tensor. `from` and `to` of one size and raw or equal: the bits are taken as they are.
struct TensorPlan {
  DType from = DType::kF32;
  DType to = DType::kF32;
  bool swapped = false;
  bool fortran = false;
  std::vector<std::int64_t> file_shape;  // as it stands in the file
  std::vector<std::int64_t> shape;       // the same elements, with the operator's rank
  std::size_t axis = 0;                  // indices [low, high) along it are kept; REQUIRES: inside shape
  std::int64_t low = 0, high = -1;       // high -1: everything
  std::filesystem::path file;            // is there, and large enough
  std::uint64_t offset = 0;
};
std::vector<std::int64_t> kept_shape(const TensorPlan& plan);
std::uint64_t kept_bytes(const TensorPlan& plan);

// What the conversion did, complete when the last piece was taken.
struct StreamCount {
  std::uint64_t elements = 0;
  std::uint64_t changed = 0;  // by rounding
};

// Can the one become the other? Float to integer cannot.
bool converts(DType from, DType to);

// Takes the bytes of the file's tensor. An integer that the dtype does not hold, and a full disk, are errors.
PieceSink stream_into(const TensorPlan& plan, std::shared_ptr<StreamCount> count);

}  // namespace fusediff
