// For tests of the built-in operators: both paths of one call give the same bits and touch nothing else.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "kit/rig.h"

namespace fusediff::builtin {

// Runs both paths; the outputs of the unfused one stay in the rig. False (and a test failure) where they differ.
inline bool paths_agree(kit::Rig& rig) {
  const fusediff_target_v1& target = *fusediff_target();
  const fusediff_status fused_status = rig.run(target, "fused");
  EXPECT_EQ(fused_status, FUSEDIFF_OK) << rig.error();
  EXPECT_EQ(rig.damage(), "") << "fused";
  std::deque<kit::RigTensor> fused = rig.outputs();
  const fusediff_status unfused_status = rig.run(target, "unfused");
  EXPECT_EQ(unfused_status, FUSEDIFF_OK) << rig.error();
  EXPECT_EQ(rig.damage(), "") << "unfused";
  if (fused_status != FUSEDIFF_OK || unfused_status != FUSEDIFF_OK || !rig.damage().empty()) {
    return false;
  }
  for (size_t o = 0; o < fused.size(); ++o) {
    kit::RigTensor& unfused = rig.outputs()[o];
    for (int64_t i = 0; !unfused.absent && i < unfused.count(); ++i) {
      if (fused[o].bits(i) != unfused.bits(i)) {
        ADD_FAILURE() << unfused.name << "[" << i << "] is " << fused[o].number(i) << " fused, " << unfused.number(i)
                      << " unfused";
        return false;
      }
    }
  }
  return true;
}

// Values in [-2, 2) in steps of 2^-22 from a counter: the same on every machine.
inline void counted_values(kit::RigTensor& tensor, uint64_t seed) {
  for (int64_t i = 0; i < tensor.count(); ++i) {
    uint64_t h = (static_cast<uint64_t>(i) + 1) * 0x9e3779b97f4a7c15u + seed;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    tensor.put_number(i, static_cast<double>(static_cast<int64_t>(h >> 40) - (int64_t{1} << 23)) * 0x1p-22);
  }
}

// FNV-1a of the bits of every output: a golden value holds that compilers and vector widths give the same.
inline uint64_t digest(kit::Rig& rig) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (kit::RigTensor& out : rig.outputs()) {
    for (int64_t i = 0; i < out.count(); ++i) {
      hash = (hash ^ out.bits(i)) * 0x100000001b3u;
    }
  }
  return hash;
}

// The digest of a rig whose inputs are counted values, after both paths agreed.
inline uint64_t counted_digest(kit::Rig& rig) {
  uint64_t seed = 1;
  for (kit::RigTensor& in : rig.inputs()) {
    counted_values(in, seed++);
  }
  return paths_agree(rig) ? digest(rig) : 0;
}

}  // namespace fusediff::builtin
