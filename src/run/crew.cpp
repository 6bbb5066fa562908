#include "run/crew.h"

#include <sched.h>
#include <csignal>

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>
#include <utility>

#include "run/crew_member.h"

namespace fusediff {
namespace {

constexpr std::uint64_t kLongestSpin = 2000;  // steps between two turns
constexpr std::size_t kSignalStackBytes = 64 << 10;

// Makes the memory the thread's signal stack as long as it lives.
class SignalStack {
 public:
  explicit SignalStack(std::span<std::byte> memory) {
    stack_t mine{};
    mine.ss_sp = memory.data();
    mine.ss_size = memory.size();
    ::sigaltstack(&mine, nullptr);
  }
  ~SignalStack() {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;
};

Hash128 digest_of(const Execution& execution) {
  Hash128 all{};
  for (const std::vector<std::byte>& output : execution.outputs) {
    const Hash128 hash = hash128(output);
    all.high = all.high * 31 + hash.high;
    all.low = all.low * 31 + hash.low;
  }
  return all;
}

}  // namespace

CrewMember::CrewMember(CrewBoard& board, std::size_t number, const RunLimits& limits, int interrupt, Arena& arena,
                       void* context)
    : board_(board),
      number_(number),
      limits_(limits),
      arena_(arena),
      shared_context_(context),
      trap_(deadline_, interrupt),
      rng_(board.plan.seed * 0x9E3779B97F4A7C15u + number) {}

bool CrewMember::start() {
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void CrewMember::join() {
  if (thread_.joinable()) thread_.join();
}

std::string CrewMember::where() const {
  const std::vector<std::size_t>& turns = board_.plan.turns[number_];
  const std::size_t turn = turn_.load(std::memory_order_relaxed);
  const std::string name = "thread " + std::to_string(number_) + ": ";
  const std::string of = std::to_string(turn + 1) + " of " + std::to_string(turns.size());
  switch (where_.load(std::memory_order_relaxed)) {
    case Where::kStarting:
      return name + "starting";
    case Where::kBetween:
      return name + "before its call " + of;
    case Where::kInCall:
      return name + "in its call " + of + " (" + board_.plan.requests[turns[turn]].call->op->name + ")";
    case Where::kDone:
      break;
  }
  return name + "done, " + std::to_string(turn) + " of " + std::to_string(turns.size()) + " calls";
}

void CrewMember::work() {
  // For the handlers; on the thread's own stack, which needs no mapping of its own and goes when it goes.
  alignas(64) std::array<std::byte, kSignalStackBytes> signal_stack;
  const SignalStack installed(signal_stack);
  Context context;
  context.handle = shared_context_;
  ForeignCalls calls(trap_, *board_.plan.target, limits_.seconds, execution_);
  bool open = !board_.plan.context_each;
  start_execution(execution_, kFirstFills);
  if (!open) {
    trap_.join(false);
    open = calls.open(&context.handle);
    trap_.part();
    if (!open) {
      const std::lock_guard lock(board_.mutex);
      if (!board_.outcome.context) board_.outcome.context = execution_;
    }
  }
  if (open) make_calls(context);
  const bool left_there = board_.broken.load(std::memory_order_relaxed);
  if (open && (!left_there || board_.plan.target->host != nullptr)) {
    start_execution(execution_, kFirstFills);
    trap_.join(false);
    context.memory.release_all(calls, context.handle);
    if (board_.plan.context_each && !left_there && !calls.broken()) calls.close(context.handle);
    trap_.part();
    if (execution_.ending != Ending::kOk) {
      const std::lock_guard lock(board_.mutex);
      if (!board_.outcome.context) board_.outcome.context = execution_;
    }
    if (calls.broken()) board_.broken.store(true, std::memory_order_relaxed);
  }
  where_.store(Where::kDone, std::memory_order_relaxed);
  const std::lock_guard lock(board_.mutex);
  ++board_.done;
  board_.all_done.notify_one();
}

void CrewMember::make_calls(Context& context) {
  for (const std::size_t request : board_.plan.turns[number_]) {
    if (board_.stop.load(std::memory_order_relaxed)) return;
    where_.store(Where::kBetween, std::memory_order_relaxed);
    if (board_.plan.suspend) pause_between();
    where_.store(Where::kInCall, std::memory_order_relaxed);
    const bool whole = make_call(context, request);
    turn_.fetch_add(1, std::memory_order_relaxed);
    board_.progress.fetch_add(1, std::memory_order_relaxed);
    if (!whole) return;
  }
}

// Nothing, a few steps, or the CPU given up: so that the threads meet in ever other places.
void CrewMember::pause_between() {
  const std::uint64_t draw = rng_.below(4);
  if (draw == 0) return;
  if (draw == 1) {
    ::sched_yield();
    return;
  }
  for (std::uint64_t i = rng_.below(kLongestSpin); i > 0; --i) std::atomic_signal_fence(std::memory_order_seq_cst);
}

bool CrewMember::make_call(Context& context, std::size_t request) {
  const RunRequest& wanted = board_.plan.requests[request];
  start_execution(execution_, wanted.fills);
  ForeignCalls calls(trap_, *board_.plan.target, limits_.seconds, execution_);
  OneRun one(wanted, limits_, arena_, bench_, calls, execution_);
  const bool others = board_.plan.turns.size() > 1;
  if (board_.plan.suspend && others) one.suspend_at(veil_, rng_.next());
  trap_.join(board_.plan.suspend);
  one.execute(context);
  one.return_blocks(context);
  trap_.part();
  one.inspect();
  const bool broken = calls.broken();
  if (broken) {
    board_.broken.store(true, std::memory_order_relaxed);
    board_.stop.store(true, std::memory_order_relaxed);
  }
  const bool ended_by_leader = broken && execution_.ending == Ending::kHang;
  if (!ended_by_leader) tally(request);
  return !broken;
}

void CrewMember::tally(std::size_t request) {
  const bool notable = board_.notable(request, execution_);
  const Hash128 digest = notable ? digest_of(execution_) : Hash128{};
  const std::lock_guard lock(board_.mutex);
  ++board_.outcome.runs;
  board_.outcome.nanoseconds += execution_.nanoseconds;
  CrewOutcome::OfRequest& of = board_.outcome.requests[request];
  ++of.calls;
  if (!notable) return;
  ++of.notable;
  if (std::find(of.digests.begin(), of.digests.end(), digest) == of.digests.end()) of.digests.push_back(digest);
  if (!of.first) of.first = execution_;
}

}  // namespace fusediff
