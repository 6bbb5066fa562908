// Answers the messages of one channel by calling a target that this process has loaded: src/host/HOST.md lists them.
// One thread a channel. Faults are not caught here: they end the process.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "target/fusediff_target.h"
#include "target/veil.h"

namespace fusediff {

struct ServedTarget {
  const fusediff_target_v1* table = nullptr;
  const char* (*note)() = nullptr;  // may be null
  std::byte* region = nullptr;      // HostMemory's, as this process sees it

  bool owns_memory() const { return table->alloc != nullptr; }
};

class ServedChannel {
 public:
  explicit ServedChannel(const ServedTarget& target);
  ~ServedChannel();
  ServedChannel(const ServedChannel&) = delete;
  ServedChannel& operator=(const ServedChannel&) = delete;

  std::string answer(std::string_view message);

 private:
  struct Parsed;
  const Parsed& parsed(std::string_view message);
  std::string answer_to(const Parsed& message);

  const ServedTarget& target_;
  Veil veil_;
  std::unordered_map<std::string, std::unique_ptr<Parsed>> known_;  // a call is made more than once with one text
};

}  // namespace fusediff
