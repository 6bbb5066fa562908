// What came back from one run of one path: facts only, no judgement. Made by the runner, read by the oracles; a test
// can make one by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fusediff {

// The bytes that memory held before the call: of ordinary size in every float type.
struct Fills {
  std::byte output{0x3F};
  std::byte workspace{0x40};
  std::byte guard{0x3E};
  bool operator==(const Fills&) const = default;
};
inline constexpr Fills kFirstFills{std::byte{0x3F}, std::byte{0x40}, std::byte{0x3E}};
inline constexpr Fills kSecondFills{std::byte{0xC0}, std::byte{0xBF}, std::byte{0xC1}};

enum class Ending {
  kOk,           // FUSEDIFF_OK
  kUnsupported,  // FUSEDIFF_UNSUPPORTED
  kRejected,     // FUSEDIFF_REJECTED
  kFailed,       // FUSEDIFF_FAILED
  kBadStatus,    // a number that is none of the four
  kGuardHit,     // a guard page was touched: guard_hit says where
  kSignal,       // any other signal
  kExit,         // the process that the target ran in ended by itself: of an isolated target
  kException,    // a C++ exception crossed the C ABI
  kHang,         // the time cap passed
  kMemory,       // the memory cap passed
};

enum class Phase { kOpen, kWorkspace, kRun, kClose };  // which call of the ABI ended so

enum class Access { kUnknown, kRead, kWrite };

// `tensor` is a name of the call, "workspace", or "" when the address belongs to none.
struct GuardHit {
  std::string tensor;
  bool behind = true;         // the guard page behind the tensor, or the one before it
  std::int64_t distance = 0;  // bytes from the tensor's nearest byte; 1 is the first byte outside
  Access access = Access::kUnknown;
};

// Guard bytes, or the gap of a strided output, that no longer hold the guard fill.
struct Overrun {
  std::string tensor;
  bool is_output = false;
  bool gap = false;    // between the elements of a strided tensor
  bool behind = true;  // when not gap
  std::int64_t distance =
      0;                   // bytes from the tensor's nearest byte (gap: from its first byte) to the first changed one
  std::int64_t bytes = 0;  // how many changed
};

struct ChangedInput {
  int input = 0;              // index into Call::inputs
  std::int64_t first = 0;     // logical stored index of the first changed element
  std::int64_t elements = 0;  // how many changed
};

struct Execution {
  Fills fills;
  Ending ending = Ending::kOk;
  Phase phase = Phase::kRun;
  int signal = 0;       // kSignal, kGuardHit
  int status = 0;       // as returned, kBadStatus among them
  std::string message;  // last_error(), or the exception's text
  std::string note;     // what the target says of the call: the name of an implementation; "" where it says nothing
  std::string printed;  // what came to stdout and stderr of an isolated target meanwhile, cut to its end
  std::optional<GuardHit> guard_hit;
  std::vector<Overrun> overruns;
  std::vector<ChangedInput> changed_inputs;
  // [outputs of the call]: logical elements, dense and row-major; empty where not wanted. Meaningful with kOk only.
  std::vector<std::vector<std::byte>> outputs;
  std::size_t workspace_bytes = 0;
  std::uint64_t nanoseconds = 0;  // inside workspace_bytes() and run()
};

}  // namespace fusediff
