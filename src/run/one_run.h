// The steps of one run, from opening the context to what the memory says afterwards. Everything that outlives a run is
// the runner's and passed in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "run/arena.h"
#include "run/buffer.h"
#include "run/call_view.h"
#include "run/foreign_calls.h"
#include "run/runner.h"
#include "run/target_memory.h"
#include "target/veil.h"

namespace fusediff {

// An open context of a target, and the blocks of the target's memory that came from it.
struct Context {
  void* handle = nullptr;
  TargetMemory memory;
};

// As if nothing had happened yet; keeps its memory.
void start_execution(Execution& execution, Fills fills);

// Memory that runs reuse.
struct Workbench {
  std::vector<Buffer> inputs;   // [inputs of the call]
  std::vector<Buffer> outputs;  // [outputs of the call]
  Buffer workspace;
  CallView view;
  std::vector<std::byte> scratch;
};

class OneRun {
 public:
  OneRun(const RunRequest& request, const RunLimits& limits, Arena& arena, Workbench& bench, ForeignCalls& calls,
         Execution& execution);

  // The call is suspended when it touches a page of one of its tensors, or of the workspace, as `draw` picks it.
  void suspend_at(Veil& veil, std::uint64_t draw) {
    veil_ = &veil;
    draw_ = draw;
  }

  // Takes memory, fills it and calls the target. REQUIRES: context is open.
  void execute(Context& context);
  // What the run left in its memory, into the execution; then gives the memory back. Comes after every call of the
  // target that the run makes.
  void inspect();
  // Blocks of the target's memory go back to the context: before it is closed.
  void return_blocks(Context& context);

 private:
  bool lay_out();
  bool inputs_fit();
  std::optional<Place> forced_place(std::string_view name) const;
  bool take(Context& context, Buffer& buffer, const Placed& placed);
  bool take_tensors(Context& context);
  bool take_workspace(Context& context, std::size_t bytes);
  bool send(Context& context, const Buffer& buffer);
  bool fetch(Context& context);
  void name_guard_hit();
  void gather_outputs();
  void compare_inputs();
  void release(Buffer& buffer);
  std::byte* drawn_byte();
  bool fail(Ending ending, Phase phase, std::string message);
  template <typename Visit>
  void each_buffer(Visit visit);

  const RunRequest& request_;
  const Call& call_;
  const RunLimits& limits_;
  Arena& arena_;
  Workbench& bench_;
  ForeignCalls& calls_;
  Execution& execution_;
  const bool own_memory_;  // the target's
  std::size_t tensor_bytes_ = 0;
  Veil* veil_ = nullptr;
  std::uint64_t draw_ = 0;
  bool readable_ = false;  // the image of every buffer is what the target left
};

}  // namespace fusediff
