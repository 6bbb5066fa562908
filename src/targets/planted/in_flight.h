// For tests of faults that need one context: calls on it one after another, and by several threads at once. Judges
// nothing but bits.
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "planted/loaded.h"

namespace fusediff::planted {

// An open context of a target that any number of rigs call.
class SharedContext {
 public:
  explicit SharedContext(const std::string& name) : table_(*loaded(name)) { open_ = table_.open("", &context_); }
  ~SharedContext() { table_.close(context_); }
  SharedContext(const SharedContext&) = delete;
  SharedContext& operator=(const SharedContext&) = delete;

  // From any thread; a rig is called by one at a time.
  fusediff_status run(kit::Rig& rig, const std::string& path = "fused") {
    fusediff_target_v1 table = table_;
    of_thread() = context_;
    table.open = [](const char*, void** context) {
      *context = of_thread();
      return FUSEDIFF_OK;
    };
    table.close = [](void*) {};
    return open_ == FUSEDIFF_OK ? rig.run(table, path) : open_;
  }

 private:
  static void*& of_thread() {
    thread_local void* context = nullptr;
    return context;
  }

  const fusediff_target_v1& table_;
  void* context_ = nullptr;
  fusediff_status open_;
};

// Bits of every element of every wanted output.
inline std::vector<uint64_t> output_bits(kit::Rig& rig) {
  std::vector<uint64_t> bits;
  for (kit::RigTensor& out : rig.outputs()) {
    for (int64_t i = 0; !out.absent && i < out.count(); ++i) {
      bits.push_back(out.bits(i));
    }
  }
  return bits;
}

// A thread for each rig calls it again and again on a context; until an output is not that of the rig alone on a
// context of its own, at most `rounds` times each. The number of threads that saw one.
inline int threads_that_differ(const std::string& name, std::deque<kit::Rig>& rigs, int rounds,
                               bool own_contexts = false) {
  std::deque<SharedContext> contexts;
  std::vector<std::vector<uint64_t>> alone;
  for (kit::Rig& rig : rigs) {
    SharedContext fresh(name);
    EXPECT_EQ(fresh.run(rig), FUSEDIFF_OK) << rig.error();
    alone.push_back(output_bits(rig));
    if (contexts.empty() || own_contexts) {
      contexts.emplace_back(name);
    }
  }
  std::atomic<int> differing{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < rigs.size(); ++i) {
    threads.emplace_back([&, i] {
      SharedContext& context = contexts[own_contexts ? i : 0];
      for (int round = 0; round < rounds && differing == 0; ++round) {
        if (context.run(rigs[i]) != FUSEDIFF_OK || output_bits(rigs[i]) != alone[i]) {
          ++differing;
          return;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return differing;
}

}  // namespace fusediff::planted
