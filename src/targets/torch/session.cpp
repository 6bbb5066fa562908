#include "torch/session.h"

// Before the others, as in aten.h.
#include <ATen/core/ivalue.h>

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <stdlib.h>

#include <charconv>
#include <mutex>
#include <string>

#include "kit/failure.h"

namespace fusediff::torch {
namespace {

using namespace kit;

constexpr int kMaxThreads = 1024;

struct Options {
  int threads = 0;  // 0: not given
  std::string_view capability;
};

int thread_count(std::string_view text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  require(whole && count >= 1 && count <= kMaxThreads, "threads must be 1 to ", kMaxThreads, ", not \"", text, "\"");
  return count;
}

void check_capability(std::string_view text) {
  const bool known = text == "default" || text == "avx2" || text == "avx512";
  require(known, "capability must be default, avx2 or avx512, not \"", text, "\"");
  // ATen takes what the variable says without a look at the CPU.
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  const bool avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  require(text != "avx2" || avx2, "capability=avx2: this CPU lacks it");
  require(text != "avx512" || avx512, "capability=avx512: this CPU lacks it");
}

Options parse(std::string_view text) {
  Options options;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(item.size() == text.size() ? text.size() : item.size() + 1);
    const std::string_view key = item.substr(0, item.find('='));
    const std::string_view value = key.size() == item.size() ? "" : item.substr(key.size() + 1);
    if (key == "threads") {
      options.threads = thread_count(value);
    } else if (key == "capability") {
      check_capability(value);
      options.capability = value;
    } else {
      reject("unknown option \"", key, "\", there are: threads=N, capability=default|avx2|avx512");
    }
  }
  return options;
}

// What the process computes with, in the words of the option; the first call decides it. Only the text of
// at::show_config() says it to the outside.
std::string_view capability_here() {
  constexpr std::string_view kSays = "CPU capability usage: ";
  const std::string config = at::show_config();
  const size_t at = config.find(kSays);
  const std::string_view rest = at == std::string::npos ? "" : std::string_view(config).substr(at + kSays.size());
  const std::string_view name = rest.substr(0, rest.find('\n'));
  return name == "AVX2" ? "avx2" : name == "AVX512" ? "avx512" : name == "NO AVX" ? "default" : "another";
}

void settle(const Options& options) {
  if (!options.capability.empty()) {
    ::setenv("ATEN_CPU_CAPABILITY", std::string(options.capability).c_str(), 1);
  }
  if (options.threads != 0) {
    at::set_num_threads(options.threads);
  }
}

}  // namespace

Session::Session(std::string_view options) {
  const Options asked = parse(options);
  static std::mutex one_at_a_time;
  static bool settled = false;
  const std::lock_guard held(one_at_a_time);
  if (!settled) {
    settle(asked);
    settled = true;
  }
  const std::string_view capability = capability_here();
  require(asked.capability.empty() || asked.capability == capability, "capability=", asked.capability,
          ": this process computes with ", capability, " already, and ATen chooses once");
  static const int threads = at::get_num_threads();
  require(asked.threads == 0 || asked.threads == threads, "threads=", asked.threads, ": this process has ", threads,
          " already, and ATen keeps one number");
}

}  // namespace fusediff::torch
