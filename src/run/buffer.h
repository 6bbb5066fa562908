// One tensor or the workspace of a run in its slot: laid out and filled before the call, inspected after it. Works on
// host memory alone; for a target with its own memory that is the image which is written and read back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/execution.h"
#include "model/tensor.h"
#include "run/arena.h"
#include "run/placement.h"
#include "run/strided.h"

namespace fusediff {

struct Buffer {
  std::string_view name;
  const Tensor* tensor = nullptr;  // nullptr: the workspace
  bool is_output = false;
  int under = -1;              // inputs: the output that lies on this one, or -1
  Slot* slot = nullptr;        // nullptr: absent, empty, or on another tensor's memory
  std::byte* first = nullptr;  // the first element; nullptr without elements
  std::size_t bytes = 0;       // from the first element to behind the last, gaps included
  Strided layout;
  void* data = nullptr;          // what the target is given
  void* target_block = nullptr;  // the target's own memory that holds the slot's image, or nullptr

  bool dense() const { return tensor == nullptr || layout.dense(); }
};

// Size and place of a tensor with elements. forced: the place that replaces the tensor's own, if any.
Placed placed(const Tensor& tensor, std::optional<Place> forced);
Placed placed_workspace(std::size_t bytes, std::optional<Place> forced);

// REQUIRES: buffer.slot, first and bytes are set. Everything of the slot that is no element holds the guard fill
// afterwards. `stored`: the input's elements, dense.
void fill_input(Buffer& buffer, std::span<const std::byte> stored, std::byte guard);
void fill_constant(Buffer& buffer, std::byte value, std::byte guard);

// Compares the elements with what was sent. scratch: reused memory.
std::optional<ChangedInput> changed_elements(const Buffer& buffer, int index, std::span<const std::byte> stored,
                                             std::vector<std::byte>& scratch);
// The logical elements, dense and row-major.
void gather(const Buffer& buffer, std::vector<std::byte>& into);

// Appends what is no longer the guard fill: before, behind and in the gaps. over: the output that lies on it, or
// nullptr; it is then the one that is named. Destroys the elements of a strided tensor: comes last.
void find_overruns(const Buffer& buffer, const Buffer* over, std::byte guard, std::vector<Overrun>& overruns);

// The hit if the address lies in a guard region of the buffer's slot. As above for `over`.
std::optional<GuardHit> guard_hit(const Buffer& buffer, const Buffer* over, std::uintptr_t address);

}  // namespace fusediff
