// EXPECT: class=nondeterminism op=rms_norm_grad experiment=pair output=grad_gamma
// From 16 rows on several threads of the path's own add to the gradient of gamma, in turn, so that the order of the sum
// is that of the rows. The lock goes to the next before the last part of the sum is stored: it now and then reads what
// was there before, and an update is lost. From triton 6307.
#include <atomic>
#include <thread>
#include <vector>

#include "builtin/operators.h"
#include "planted/changed_call.h"
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

constexpr int64_t kRowsForThreads = 16;
constexpr int64_t kThreads = 2;
constexpr int64_t kGroup = 2;    // rows that one adds before the next has its turn
constexpr int64_t kPart = 512;   // columns
constexpr int64_t kSpins = 100;  // looks at the lock before a thread gives way

size_t workspace(const Call& call) { return workspace_of_fused(builtin::kRmsNormGrad, call); }

template <class T>
struct Terms {
  View<const T, 2> grad_y, s;
  View<const float, 1> rstd;

  int64_t rows() const { return s.shape[0]; }
  int64_t columns() const { return s.shape[1]; }
  float at(int64_t row, int64_t c) const {
    return convert<float>(grad_y(row, c)) * (convert<float>(s(row, c)) * rstd(row));
  }
};

void wait_for(const std::atomic<int64_t>& turn, int64_t group) {
  for (int64_t i = 1; turn.load(std::memory_order_acquire) != group; ++i) {
    if (i % kSpins == 0) {
      std::this_thread::yield();
    }
  }
}

// Adds rows [first, end) to columns [from, to) of the sum. Relaxed, as plain memory of a device is.
template <class T>
void add_part(const Terms<T>& terms, int64_t first, int64_t end, int64_t from, int64_t to, std::vector<float>& sums) {
  float part[kPart];
  for (int64_t c = from; c < to; ++c) {
    part[c - from] = std::atomic_ref(sums[static_cast<size_t>(c)]).load(std::memory_order_relaxed);
  }
  for (int64_t row = first; row < end; ++row) {
    for (int64_t c = from; c < to; ++c) {
      part[c - from] += terms.at(row, c);
    }
  }
  for (int64_t c = from; c < to; ++c) {
    std::atomic_ref(sums[static_cast<size_t>(c)]).store(part[c - from], std::memory_order_relaxed);
  }
}

// The groups `first`, `first` + kThreads, ... of rows, each in its turn.
template <class T>
void add_groups(const Terms<T>& terms, int64_t first, std::atomic<int64_t>& turn, std::vector<float>& sums) {
  const int64_t last_part = (terms.columns() - 1) / kPart * kPart;
  for (int64_t group = first; group * kGroup < terms.rows(); group += kThreads) {
    const int64_t row = group * kGroup;
    const int64_t end = std::min(row + kGroup, terms.rows());
    wait_for(turn, group);
    for (int64_t from = 0; from < last_part; from += kPart) {
      add_part(terms, row, end, from, from + kPart, sums);
    }
    if (kFaulty) {
      turn.store(group + 1, std::memory_order_release);
    }
    add_part(terms, row, end, last_part, terms.columns(), sums);
    if (!kFaulty) {
      turn.store(group + 1, std::memory_order_release);
    }
  }
}

template <class T>
std::vector<float> sum_by_threads(const Call& call) {
  const Terms<T> terms{call.input("grad_y").view<const T, 2>(),
                       call.input(call.flag("add_residual") ? "residual_out" : "x").view<const T, 2>(),
                       call.input("rstd").view<const float, 1>()};
  std::vector<float> sums(static_cast<size_t>(terms.columns()));
  std::atomic<int64_t> turn{0};
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { add_groups(terms, i, turn, sums); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return sums;
}

void run(const Call& call) {
  const Tensor x = call.input("x");
  if (x.rank() != 2 || x.size(0) < kRowsForThreads || x.size(1) == 0) {
    return run_fused(builtin::kRmsNormGrad, call);
  }
  by_dtype<float, Half, BFloat16, F8E4M3, F8E5M2>(x, [&](auto type) {
    using T = typename decltype(type)::type;
    const std::vector<float> sums = sum_by_threads<T>(call);  // first: grad_x may lie on grad_y
    run_fused(builtin::kRmsNormGrad, call);
    store(call.output("grad_gamma").view<T, 1>(), sums.data());
  });
}

}  // namespace

constinit const Operator kTriton6307{
    "rms_norm_grad", PLANTED_LIKE_BUILTIN("rms_norm_grad"), {{"fused", run, workspace}}};

}  // namespace fusediff::planted

PLANTED_TARGET("triton_6307", fusediff::planted::kTriton6307);
