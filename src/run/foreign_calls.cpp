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
         ending == Ending::kExit || ending == Ending::kException;
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

// What an isolated target names a context or its memory by.
void* handle_of(std::uint64_t number) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number)); }
std::uint64_t number_of(const void* handle) { return reinterpret_cast<std::uintptr_t>(handle); }

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

bool ForeignCalls::hang(Phase phase) {
  broken_ = true;
  std::array<char, 48> message{};
  std::snprintf(message.data(), message.size(), "no answer within %g s", seconds_);
  end_with(Ending::kHang, phase, message.data());
  return false;
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
      fault_ = trap_.fault();
      end_with(Ending::kSignal, phase, describe(fault_));
      execution_.signal = fault_.signal;
      return false;
    case Left::kExpired:
      break;
  }
  return hang(phase);
}

// A status other than FUSEDIFF_OK too is an ending.
bool ForeignCalls::answered(HostAnswer answer, Phase phase) {
  if (!answer.printed.empty()) execution_.printed = std::move(answer.printed);
  if (!answer.note.empty()) execution_.note = std::move(answer.note);
  switch (answer.kind) {
    case HostAnswer::Kind::kAnswered:
      if (answer.status == FUSEDIFF_OK) return true;
      end_with_status(answer.status, phase, std::move(answer.text));
      return false;
    case HostAnswer::Kind::kThrew:
      end_with(Ending::kException, phase, std::move(answer.text));
      return false;
    case HostAnswer::Kind::kGivenUp:
      return hang(phase);
    case HostAnswer::Kind::kEnded:
      break;
  }
  broken_ = true;
  const HostEnd& end = answer.end;
  if (end.ended.signal == 0) {
    end_with(Ending::kExit, phase, fusediff::describe(end.ended));
    return false;
  }
  fault_ = {end.ended.signal, end.code, end.address, end.stack, end.access, end.own_thread};
  end_with(Ending::kSignal, phase, describe(fault_));
  execution_.signal = fault_.signal;
  return false;
}

// The time of a run is watched as it is for a target in this process; the host is told nothing.
Host::GiveUp ForeignCalls::give_up() const {
  return [this] { return trap_.is_expired(); };
}

std::string ForeignCalls::last_error() {
  std::array<char, 1024> text{};
  if (abi_->last_error == nullptr) return "";
  auto body = [&] {
    const char* said = abi_->last_error();
    if (said != nullptr) std::memcpy(text.data(), said, ::strnlen(said, text.size() - 1));
  };
  const Left left = trap_.call(body);
  if (left == Left::kReturned) return text.data();
  broken_ = broken_ || left == Left::kFault || left == Left::kExpired;
  return "last_error() itself failed";
}

void ForeignCalls::end_with_status(int status, Phase phase, std::string message) {
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
  end_with_status(status, phase, last_error());
  return false;
}

bool ForeignCalls::open(void** context) {
  if (target_.host == nullptr) {
    return status_call(Phase::kOpen, [&] { return abi_->open(target_.options.c_str(), context); });
  }
  HostAnswer answer = target_.host->open(target_.options, give_up());
  *context = handle_of(answer.number);
  return answered(std::move(answer), Phase::kOpen);
}

void ForeignCalls::close(void* context) {
  if (target_.host != nullptr) {
    answered(target_.host->close(number_of(context), give_up()), Phase::kClose);
    return;
  }
  auto body = [&] { abi_->close(context); };
  answered(trap_.call(body), Phase::kClose);
}

bool ForeignCalls::workspace_bytes(void* context, const fusediff_call& call, std::size_t& bytes) {
  if (target_.host == nullptr && abi_->workspace_bytes == nullptr) return true;
  const std::uint64_t start = nanoseconds_now();
  bool ok = false;
  if (target_.host == nullptr) {
    ok = status_call(Phase::kWorkspace, [&] { return abi_->workspace_bytes(context, &call, &bytes); });
  } else {
    HostAnswer answer = target_.host->workspace_bytes(number_of(context), call, give_up());
    bytes = static_cast<std::size_t>(answer.number);
    ok = answered(std::move(answer), Phase::kWorkspace);
  }
  execution_.nanoseconds += nanoseconds_now() - start;
  return ok;
}

bool ForeignCalls::run(void* context, const fusediff_call& call, const void* cover) {
  const std::uint64_t start = nanoseconds_now();
  const bool ok = target_.host == nullptr
                      ? status_call(Phase::kRun, [&] { return abi_->run(context, &call); })
                      : answered(target_.host->run(number_of(context), call, cover, give_up()), Phase::kRun);
  execution_.nanoseconds += nanoseconds_now() - start;
  if (target_.note != nullptr && !broken_) keep_note();
  return ok;
}

void ForeignCalls::keep_note() {
  std::array<char, 256> text{};
  auto body = [&] {
    const char* said = target_.note();
    if (said != nullptr) std::memcpy(text.data(), said, ::strnlen(said, text.size() - 1));
  };
  if (answered(trap_.call(body), Phase::kRun)) execution_.note = text.data();
}

void* ForeignCalls::alloc(void* context, std::size_t bytes, std::string_view what) {
  void* memory = nullptr;
  std::string why;
  if (target_.host == nullptr) {
    auto body = [&] { memory = abi_->alloc(context, bytes); };
    if (!answered(trap_.call(body), Phase::kRun)) return nullptr;
    if (memory == nullptr) why = last_error();
  } else {
    HostAnswer answer = target_.host->alloc(number_of(context), bytes, give_up());
    memory = handle_of(answer.number);
    why = answer.text;
    if (!answered(std::move(answer), Phase::kRun)) return nullptr;
  }
  if (memory == nullptr) {
    end_with(Ending::kMemory, Phase::kRun,
             "alloc of " + std::to_string(bytes) + " bytes for " + std::string(what) + " returned NULL" +
                 (why.empty() ? "" : ": ") + why);
  }
  return memory;
}

void ForeignCalls::release(void* context, void* memory) {
  if (target_.host != nullptr) {
    answered(target_.host->release(number_of(context), memory, give_up()), Phase::kRun);
    return;
  }
  auto body = [&] { abi_->release(context, memory); };
  answered(trap_.call(body), Phase::kRun);
}

bool ForeignCalls::write(void* context, void* memory, const void* host, std::size_t bytes, std::string_view what) {
  const Ending before = execution_.ending;
  const bool ok = target_.host == nullptr
                      ? status_call(Phase::kRun, [&] { return abi_->write(context, memory, host, bytes); })
                      : answered(target_.host->write(number_of(context), memory, host, bytes, give_up()), Phase::kRun);
  if (!ok && before == Ending::kOk) execution_.message = "write of " + std::string(what) + ": " + execution_.message;
  return ok;
}

bool ForeignCalls::read(void* context, void* host, const void* memory, std::size_t bytes, std::string_view what) {
  const Ending before = execution_.ending;
  const bool ok = target_.host == nullptr
                      ? status_call(Phase::kRun, [&] { return abi_->read(context, host, memory, bytes); })
                      : answered(target_.host->read(number_of(context), host, memory, bytes, give_up()), Phase::kRun);
  if (!ok && before == Ending::kOk) execution_.message = "read of " + std::string(what) + ": " + execution_.message;
  return ok;
}

void ForeignCalls::check_other_threads() {
  const Left left = trap_.pending();
  if (left == Left::kFault) answered(left, Phase::kRun);
}

}  // namespace fusediff
