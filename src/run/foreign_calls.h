// The functions of a target, called under a trap or asked of the process that it runs in, each outcome written into the
// execution. The only place where a target's code is entered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "model/execution.h"
#include "run/trap.h"
#include "target/target.h"

namespace fusediff {

class ForeignCalls {
 public:
  ForeignCalls(Trap& trap, const Target& target, double seconds, Execution& execution)
      : trap_(trap), target_(target), abi_(target.abi), seconds_(seconds), execution_(execution) {}

  // Each returns whether the target answered FUSEDIFF_OK. Otherwise the execution says how it ended; the first such
  // ending stays, except that a fault replaces a mere status.
  bool open(void** context);
  void close(void* context);
  bool workspace_bytes(void* context, const fusediff_call& call, std::size_t& bytes);
  // cover: of an isolated target: a byte of a tensor, see Host::run().
  bool run(void* context, const fusediff_call& call, const void* cover = nullptr);
  // `what` names the tensor in a message.
  void* alloc(void* context, std::size_t bytes, std::string_view what);  // nullptr: not answered
  void release(void* context, void* memory);
  bool write(void* context, void* memory, const void* host, std::size_t bytes, std::string_view what);
  bool read(void* context, void* host, const void* memory, std::size_t bytes, std::string_view what);

  // For faults that another thread of the target raised meanwhile.
  void check_other_threads();
  // The target was left where it stood: none of its functions may be called on this context any more.
  bool broken() const { return broken_; }
  // This process is as it was, whatever became of the target's: memory may be given back.
  bool harmless() const { return !broken_ || target_.host != nullptr; }
  // The last fault, if the ending is kSignal and it was a memory access.
  const Fault& fault() const { return fault_; }

 private:
  template <typename Function>
  bool status_call(Phase phase, Function function);
  bool answered(Left left, Phase phase);
  bool answered(HostAnswer answer, Phase phase);
  bool hang(Phase phase);
  void keep_note();
  Host::GiveUp give_up() const;
  void end_with_status(int status, Phase phase, std::string message);
  void end_with(Ending ending, Phase phase, std::string message);
  std::string last_error();

  Trap& trap_;
  const Target& target_;
  const fusediff_target_v1* const abi_;  // null: the target has a host
  const double seconds_;
  Execution& execution_;
  bool broken_ = false;
  Fault fault_;
};

}  // namespace fusediff
