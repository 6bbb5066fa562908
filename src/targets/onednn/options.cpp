// See options.h.
#include "onednn/options.h"

#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>

#include "kit/failure.h"

// Of the OpenMP runtime that oneDNN is linked to; null where it has another one.
extern "C" {
void omp_set_num_threads(int threads) __attribute__((weak));
int omp_get_max_threads() __attribute__((weak));
}

namespace fusediff::onednn {
namespace {

using namespace kit;

constexpr int kMaxThreads = 256;

struct Level {
  const char* name;
  dnnl::cpu_isa isa;
};

constexpr Level kLevels[] = {{"default", dnnl::cpu_isa::all},
                             {"sse41", dnnl::cpu_isa::sse41},
                             {"avx", dnnl::cpu_isa::avx},
                             {"avx2", dnnl::cpu_isa::avx2},
                             {"avx512_core", dnnl::cpu_isa::avx512_core},
                             {"avx512_core_vnni", dnnl::cpu_isa::avx512_core_vnni},
                             {"avx512_core_bf16", dnnl::cpu_isa::avx512_core_bf16}};

const Level& find_level(std::string_view name) {
  for (const Level& level : kLevels) {
    if (name == level.name) {
      return level;
    }
  }
  reject("isa must be sse41, avx, avx2, avx512_core, avx512_core_vnni, avx512_core_bf16 or default, not \"", name,
         "\"");
}

const char* name_of(dnnl::cpu_isa isa) {
  for (const Level& level : kLevels) {
    if (level.isa == isa) {
      return level.name;
    }
  }
  return "a level without a name here";
}

// One of two words.
bool choose(std::string_view key, std::string_view value, std::string_view yes, std::string_view no) {
  require(value == yes || value == no, key, " must be ", yes, " or ", no, ", not \"", value, "\"");
  return value == yes;
}

int read_threads(std::string_view value) {
  int threads = 0;
  for (const char digit : value) {
    require(digit >= '0' && digit <= '9' && threads <= kMaxThreads, "threads must be 0 to ", kMaxThreads, ", not \"",
            value, "\"");
    threads = threads * 10 + (digit - '0');
  }
  require(!value.empty() && threads <= kMaxThreads, "threads must be 0 to ", kMaxThreads, ", not \"", value, "\"");
  return threads;
}

void read_option(std::string_view key, std::string_view value, Options& options) {
  if (key == "isa") {
    options.isa = find_level(value).name;
  } else if (key == "scratchpad") {
    options.user_scratchpad = choose(key, value, "user", "library");
  } else if (key == "primitive") {
    options.shared_primitive = choose(key, value, "shared", "own");
  } else if (key == "threads") {
    options.threads = read_threads(value);
  } else if (key == "empty") {
    options.skip_empty = choose(key, value, "skip", "call");
  } else {
    reject("unknown option \"", key, "\"; there are isa, scratchpad, primitive, threads and empty");
  }
}

}  // namespace

Options parse_options(std::string_view text) {
  Options options;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const size_t equals = item.find('=');
    require(equals != std::string_view::npos, "option \"", item, "\" is not key=value");
    read_option(item.substr(0, equals), item.substr(equals + 1), options);
  }
  return options;
}

void claim_isa(const std::string& isa) {
  static std::mutex mutex;
  static std::string claimed;
  const std::lock_guard lock(mutex);
  if (claimed.empty()) {
    if (isa != "default") {
      // Refused where something in this process has used oneDNN already: the comparison below says so.
      (void)dnnl::set_max_cpu_isa(find_level(isa).isa);
    }
    claimed = isa;
  }
  require(claimed == isa, "isa=", isa, ": oneDNN runs at isa=", claimed,
          " in this process and cannot change; --isolate gives each side a process of its own");
  if (isa != "default") {
    const dnnl::cpu_isa now = dnnl::get_effective_cpu_isa();
    require(now == find_level(isa).isa, "isa=", isa, ": this process has ", name_of(now),
            ", because of its CPU or because oneDNN was in use before");
  }
}

void set_threads(int threads) {
  if (omp_set_num_threads == nullptr || omp_get_max_threads == nullptr) {
    return;
  }
  // What OpenMP gives by itself, seen before the first change.
  static const int by_itself = omp_get_max_threads();
  omp_set_num_threads(threads == 0 ? by_itself : threads);
}

}  // namespace fusediff::onednn
