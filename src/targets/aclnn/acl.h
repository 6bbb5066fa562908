// The part of CANN's C ABI that the target uses, declared after the public documentation (AscendCL and aclnn API
// reference, CANN 8 and 9): no SDK is needed to build. Only types and numbers stand here; functions are looked up by
// name in the libraries (library.h).
#pragma once

#include <cstddef>
#include <cstdint>

struct aclTensor;
struct aclScalar;
struct aclIntArray;
struct aclOpExecutor;

namespace fusediff::aclnn {

using AclContext = void*;
using AclStream = void*;

// aclError and aclnnStatus: 0 is success.
inline constexpr int kSuccess = 0;
inline constexpr int kRepeatInitialize = 100002;
inline constexpr int kParamNullptr = 161001;
inline constexpr int kParamInvalid = 161002;
inline constexpr int kInnerTiling = 561002;

// aclDataType.
inline constexpr int kFloat = 0;
inline constexpr int kFloat16 = 1;
inline constexpr int kInt8 = 2;
inline constexpr int kInt32 = 3;
inline constexpr int kUint8 = 4;
inline constexpr int kInt64 = 9;
inline constexpr int kDouble = 11;
inline constexpr int kBool = 12;
inline constexpr int kBfloat16 = 27;

// aclFormat: the one that has no layout of its own.
inline constexpr int kFormatNd = 2;

// aclrtMemMallocPolicy and aclrtMemcpyKind.
inline constexpr int kMallocHugeFirst = 0;
inline constexpr int kHostToDevice = 1;
inline constexpr int kDeviceToHost = 2;

// Bytes of an element of one of the types above.
constexpr size_t element_bytes(int type) {
  switch (type) {
    case kInt64:
    case kDouble:
      return 8;
    case kFloat:
    case kInt32:
      return 4;
    case kFloat16:
    case kBfloat16:
      return 2;
    default:
      return 1;
  }
}

}  // namespace fusediff::aclnn
