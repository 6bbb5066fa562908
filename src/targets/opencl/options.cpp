#include "opencl/options.h"

#include <charconv>
#include <initializer_list>

#include "kit/failure.h"

namespace fusediff::opencl {
namespace {

// The position of `value` among the words that are allowed.
int choice(std::string_view name, std::string_view value, std::initializer_list<std::string_view> allowed) {
  int at = 0;
  std::string all;
  for (const std::string_view word : allowed) {
    if (word == value) return at;
    all += (at++ == 0 ? "" : ", ") + std::string(word);
  }
  kit::reject("option ", name, " is \"", value, "\", it must be one of ", std::string_view(all));
}

int number(std::string_view name, std::string_view value) {
  int parsed = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  kit::require(error == std::errc() && end == value.data() + value.size() && parsed >= 0, "option ", name, " is \"",
               value, "\", it must be a number from 0 on");
  return parsed;
}

void apply(Options& options, std::string_view name, std::string_view value) {
  if (name == "platform") {
    options.platform = number(name, value);
  } else if (name == "device") {
    options.device = number(name, value);
  } else if (name == "queue") {
    options.queue_per_thread = choice(name, value, {"one", "per_thread"}) == 1;
  } else if (name == "scratch") {
    options.shared_scratch = choice(name, value, {"own", "shared"}) == 1;
  } else if (name == "wait") {
    options.wait_each_step = choice(name, value, {"call", "step"}) == 1;
  } else if (name == "contract") {
    options.contract = choice(name, value, {"off", "on"}) == 1;
  } else if (name == "memory") {
    options.memory = choice(name, value, {"svm", "buffer"}) == 0 ? Options::Memory::kSvm : Options::Memory::kBuffer;
  } else if (name == "kernels") {
    options.kernels = value;
  } else if (name == "build") {
    options.build = value;
  } else {
    kit::reject("unknown option \"", name,
                "\": there are platform, device, queue, scratch, wait, contract, memory, kernels, build");
  }
}

}  // namespace

Options parse_options(std::string_view text) {
  Options options;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(word.size() < text.size() ? word.size() + 1 : word.size());
    const size_t equals = word.find('=');
    kit::require(equals != std::string_view::npos, "option \"", word, "\" must be NAME=VALUE");
    apply(options, word.substr(0, equals), word.substr(equals + 1));
  }
  return options;
}

}  // namespace fusediff::opencl
