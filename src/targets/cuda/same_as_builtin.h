// For tests: the outputs of a target are those of the built-in one, bit for bit, and nothing else is touched.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "kit/rig.h"

namespace fusediff::cuda {

// The table of a target library, which stays loaded; null with a test failure.
inline const fusediff_target_v1* load_target(const std::string& file) {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    ADD_FAILURE() << ::dlerror();
    return nullptr;
  }
  using Entry = const fusediff_target_v1* (*)();
  return reinterpret_cast<Entry>(::dlsym(library, "fusediff_target"))();
}

inline const fusediff_target_v1* builtin_target() {
  static const fusediff_target_v1* const target = load_target(FUSEDIFF_BIN_DIR "/targets/builtin.so");
  return target;
}

// Every NaN is one, except in outputs that are only moved (moe_permute).
inline uint64_t bits_of(kit::RigTensor& tensor, int64_t i, bool moved) {
  if (!moved) {
    return tensor.bits(i);
  }
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.at(i), kit::dtype_bytes(tensor.dtype));
  return bits;
}

// False (and a test failure) where a path of `target` differs from the built-in unfused one.
inline bool same_as_builtin(kit::Rig& rig, const fusediff_target_v1& target, bool moved) {
  if (rig.run(*builtin_target(), "unfused") != FUSEDIFF_OK) {
    ADD_FAILURE() << "builtin: " << rig.error();
    return false;
  }
  std::deque<kit::RigTensor> expected = rig.outputs();
  for (const char* path : {"fused", "unfused"}) {
    if (rig.run(target, path) != FUSEDIFF_OK || !rig.damage().empty()) {
      ADD_FAILURE() << path << ": " << rig.error() << rig.damage();
      return false;
    }
    for (size_t o = 0; o < expected.size(); ++o) {
      kit::RigTensor& out = rig.outputs()[o];
      for (int64_t i = 0; !out.absent && i < out.count(); ++i) {
        if (bits_of(out, i, moved) != bits_of(expected[o], i, moved)) {
          ADD_FAILURE() << path << ": " << out.name << "[" << i << "] is " << out.number(i) << ", builtin "
                        << expected[o].number(i);
          return false;
        }
      }
    }
  }
  return true;
}

}  // namespace fusediff::cuda
