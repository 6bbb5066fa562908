// Dtypes as OpenCL C spells them. bf16 and the 8-bit floats have no type there: kernels get their bits as integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kit/number.h"

namespace fusediff::opencl {

struct ElementType {
  int32_t dtype;
  const char* opencl;
  size_t bytes;
};

inline constexpr ElementType kElementTypes[] = {
    {FUSEDIFF_F64, "double", 8},  {FUSEDIFF_F32, "float", 4},      {FUSEDIFF_F16, "half", 2},
    {FUSEDIFF_BF16, "ushort", 2}, {FUSEDIFF_F8E4M3FN, "uchar", 1}, {FUSEDIFF_F8E5M2, "uchar", 1},
    {FUSEDIFF_I64, "long", 8},    {FUSEDIFF_I32, "int", 4},        {FUSEDIFF_I16, "short", 2},
    {FUSEDIFF_I8, "char", 1},     {FUSEDIFF_U8, "uchar", 1},       {FUSEDIFF_BOOL, "uchar", 1},
};

// Null for a dtype that does not exist.
inline const ElementType* element_type(int32_t dtype) {
  for (const ElementType& one : kElementTypes) {
    if (one.dtype == dtype) return &one;
  }
  return nullptr;
}

// 0 where no dtype is named so.
inline int32_t dtype_named(std::string_view name) {
  for (const ElementType& one : kElementTypes) {
    if (name == kit::dtype_name(one.dtype)) return one.dtype;
  }
  return 0;
}

}  // namespace fusediff::opencl
