#include "run/foreign_calls.h"

#include <time.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

namespace fusediff {
namespace {

std::uint64_t nanoseconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

bool is_fault(Ending ending) {
  return ending == Ending::kGuardHit || ending == Ending::kSignal || ending == Ending::kHang ||
         ending == Ending::kException;
}

Ending ending_of(int status) {
  switch (status) {
    case FUSEDIFF_UNSUPPORTED:
      return Ending::kUnsupported;
    case FUSEDIFF_REJECTED:
      return Ending::kRejected;
    case FUSEDIFF_FAILED:
      return Ending::kFailed;
    default:
      return Ending::kBadStatus;
  }
}

std::string describe(const Fault& fault) {
  constexpr std::uintptr_t kNearNull = 64 << 10;
  constexpr std::uintptr_t kNearStack = 64 << 10;
  const char* abbreviation = ::sigabbrev_np(fault.signal);
  std::string text = std::string("SIG") + (abbreviation == nullptr ? "?" : abbreviation);
  if (fault.signal == SIGSEGV || fault.signal == SIGBUS) {
    const bool kernel = fault.code == SI_KERNEL;  // x86-64: the address is not a possible one and not told
    if (fault.access != Access::kUnknown && !kernel) text += fault.access == Access::kWrite ? " writing" : " reading";
    std::array<char, 32> address{};
    std::snprintf(address.data(), address.size(), " 0x%" PRIxPTR, fault.address);
    const std::uintptr_t from_stack =
        fault.address > fault.stack ? fault.address - fault.stack : fault.stack - fault.address;
    if (kernel) {
      text += " at an impossible address";
    } else if (fault.address < kNearNull) {
      text += std::string(address.data()) + " (near NULL)";
    } else if (fault.stack != 0 && from_stack < kNearStack) {
      text += ": stack overflow";
    } else if (fault.code > 0) {
      text += address.data();
    }
  }
  if (fault.other_thread) text += ", on a thread that the target started";
  return text;
}

}  // namespace

void ForeignCalls::end_with(Ending ending, Phase phase, std::string message) {
  if (execution_.ending != Ending::kOk && (!is_fault(ending) || is_fault(execution_.ending))) return;
  execution_.ending = ending;
  execution_.phase = phase;
  execution_.message = std::move(message);
}

bool ForeignCalls::answered(Left left, Phase phase) {
  switch (left) {
    case Left::kReturned:
      return true;
    case Left::kException:
      end_with(Ending::kException, phase, std::string(trap_.thrown()));
      return false;
    case Left::kNoMemory:
      end_with(Ending::kMemory, phase, std::string(trap_.thrown()));
      return false;
    case Left::kFault:
      broken_ = true;
      end_with(Ending::kSignal, phase, describe(trap_.fault()));
      execution_.signal = trap_.fault().signal;
      return false;
    case Left::kExpired:
      break;
  }
  broken_ = true;
  std::array<char, 48> message{};
  std::snprintf(message.data(), message.size(), "no answer within %g s", seconds_);
  end_with(Ending::kHang, phase, message.data());
  return false;
}

std::string ForeignCalls::last_error() {
  std::array<char, 1024> text{};
  if (abi_.last_error == nullptr) return "";
  auto body = [&] {
    const char* said = abi_.last_error();
    if (said != nullptr) std::memcpy(text.data(), said, ::strnlen(said, text.size() - 1));
  };
  const Left left = trap_.call(body);
  if (left == Left::kReturned) return text.data();
  broken_ = broken_ || left == Left::kFault || left == Left::kExpired;
  return "last_error() itself failed";
}

void ForeignCalls::end_with_status(int status, Phase phase) {
  std::string message = last_error();
  const Ending ending = ending_of(status);
  if (ending == Ending::kBadStatus) {
    message =
        "status " + std::to_string(status) + " is none of fusediff_status" + (message.empty() ? "" : ": ") + message;
  }
  end_with(ending, phase, std::move(message));
  execution_.status = status;
}

template <typename Function>
bool ForeignCalls::status_call(Phase phase, Function function) {
  int status = FUSEDIFF_OK;
  auto body = [&] { status = static_cast<int>(function()); };
  if (!answered(trap_.call(body), phase)) return false;
  if (status == FUSEDIFF_OK) return true;
  end_with_status(status, phase);
  return false;
}

bool ForeignCalls::open(void** context) {
  return status_call(Phase::kOpen, [&] { return abi_.open(target_.options.c_str(), context); });
}

void ForeignCalls::close(void* context) {
  auto body = [&] { abi_.close(context); };
  answered(trap_.call(body), Phase::kClose);
}

bool ForeignCalls::workspace_bytes(void* context, const fusediff_call& call, std::size_t& bytes) {
  if (abi_.workspace_bytes == nullptr) return true;
  const std::uint64_t start = nanoseconds_now();
  const bool ok = status_call(Phase::kWorkspace, [&] { return abi_.workspace_bytes(context, &call, &bytes); });
  execution_.nanoseconds += nanoseconds_now() - start;
  return ok;
}

bool ForeignCalls::run(void* context, const fusediff_call& call) {
  const std::uint64_t start = nanoseconds_now();
  const bool ok = status_call(Phase::kRun, [&] { return abi_.run(context, &call); });
  execution_.nanoseconds += nanoseconds_now() - start;
  return ok;
}

void* ForeignCalls::alloc(void* context, std::size_t bytes, std::string_view what) {
  void* memory = nullptr;
  auto body = [&] { memory = abi_.alloc(context, bytes); };
  if (!answered(trap_.call(body), Phase::kRun)) return nullptr;
  if (memory == nullptr) {
    std::string why = last_error();
    end_with(Ending::kMemory, Phase::kRun,
             "alloc of " + std::to_string(bytes) + " bytes for " + std::string(what) + " returned NULL" +
                 (why.empty() ? "" : ": ") + why);
  }
  return memory;
}

void ForeignCalls::release(void* context, void* memory) {
  auto body = [&] { abi_.release(context, memory); };
  answered(trap_.call(body), Phase::kRun);
}

bool ForeignCalls::write(void* context, void* memory, const void* host, std::size_t bytes, std::string_view what) {
  const Ending before = execution_.ending;
  const bool ok = status_call(Phase::kRun, [&] { return abi_.write(context, memory, host, bytes); });
  if (!ok && before == Ending::kOk) execution_.message = "write of " + std::string(what) + ": " + execution_.message;
  return ok;
}

bool ForeignCalls::read(void* context, void* host, const void* memory, std::size_t bytes, std::string_view what) {
  const Ending before = execution_.ending;
  const bool ok = status_call(Phase::kRun, [&] { return abi_.read(context, host, memory, bytes); });
  if (!ok && before == Ending::kOk) execution_.message = "read of " + std::string(what) + ": " + execution_.message;
  return ok;
}

void ForeignCalls::check_other_threads() {
  const Left left = trap_.pending();
  if (left == Left::kFault) answered(left, Phase::kRun);
}

}  // namespace fusediff
