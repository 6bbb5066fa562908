// For tests of the built-in operators: both paths of one call give the same bits and touch nothing else.
#pragma once

#include <gtest/gtest.h>

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

}  // namespace fusediff::builtin
