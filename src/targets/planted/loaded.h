// For tests of planted targets: a target opened from its library, and the built-in one beside it.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "fusediff_target.h"
#include "kit/rig.h"

namespace fusediff::planted {

// The table of bin/targets/<name>.so, which stays loaded; a test failure and null where there is none.
inline const fusediff_target_v1* loaded(const std::string& name) {
  const std::string path = std::string(FUSEDIFF_BIN_DIR) + "/targets/" + name + ".so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    ADD_FAILURE() << dlerror();
    return nullptr;
  }
  const auto entry = reinterpret_cast<const fusediff_target_v1* (*)()>(dlsym(library, "fusediff_target"));
  EXPECT_STREQ(entry()->name, name.c_str());
  return entry();
}

// Runs a path of each target on the rig's inputs: outputs that differ by bits, "" for none. What the rig notices
// besides (guards, gaps, inputs) stands there too.
inline std::string difference(kit::Rig& rig, const std::string& target, const std::string& path,
                              const std::string& against, const std::string& against_path) {
  std::string found;
  if (rig.run(*loaded(target), path) != FUSEDIFF_OK) {
    found += rig.error() + "; ";
  }
  found += rig.damage();
  std::deque<kit::RigTensor> first = rig.outputs();
  if (rig.run(*loaded(against), against_path) != FUSEDIFF_OK) {
    found += rig.error() + "; ";
  }
  found += rig.damage();
  for (size_t o = 0; o < first.size(); ++o) {
    kit::RigTensor& second = rig.outputs()[o];
    int64_t differing = 0;
    for (int64_t i = 0; !second.absent && i < second.count(); ++i) {
      differing += first[o].bits(i) != second.bits(i);
    }
    if (differing > 0) {
      found += second.name + " differs in " + std::to_string(differing) + "; ";
    }
  }
  return found;
}

}  // namespace fusediff::planted
