// The scene of one call of one path, for the reruns of investigate.h that look at one side alone.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "engine/investigate.h"
#include "engine/side.h"

namespace fusediff {

class CallScene {
 public:
  // first: how the call came back. REQUIRES: what is passed outlives this.
  CallScene(Runner& runner, const PathOf& path, const Call& call, std::vector<std::span<const std::byte>> inputs,
            const Execution& first, Bank bank, Budget& budget)
      : side_(path, call, bank, /*keep_context=*/false),
        inputs_(std::move(inputs)),
        sides_{&side_, &side_},
        first_{&first, &first},
        fills_{first.fills, first.fills},
        scene_{runner, call, inputs_, sides_, first_, fills_, budget} {}
  CallScene(const CallScene&) = delete;
  CallScene& operator=(const CallScene&) = delete;

  // Both sides are the call: the side that is asked for only names it.
  const Scene& scene() const { return scene_; }

 private:
  SideRun side_;
  std::vector<std::span<const std::byte>> inputs_;
  std::array<const SideRun*, 2> sides_;
  std::array<const Execution*, 2> first_;
  std::array<Fills, 2> fills_;
  Scene scene_;
};

}  // namespace fusediff
