// fusediff-worker: an ordinary libFuzzer program. Its own options stand behind -ignore_remaining_args=1:
//
//   fusediff-worker CORPUS -seed=1 -runs=1000 -ignore_remaining_args=1 --target planted
//
// With --out it goes on after a finding and writes it below that folder; without, the first finding is a crash, as
// every tool around libFuzzer expects. `fusediff fuzz` runs several of it.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "campaign/captured.h"
#include "campaign/found.h"
#include "base/spawn.h"
#include "cli/options.h"
#include "model/case_json.h"
#include "worker.h"

namespace {

using namespace fusediff;

constexpr const char* kOursFollow = "-ignore_remaining_args=1";
constexpr std::uint64_t kMaxArguments = 1 << 20;

std::unique_ptr<Worker> worker;

OptionSet options() {
  OptionSet set;
  set.usage = "fusediff-worker CORPUS [libFuzzer's options] -ignore_remaining_args=1 [options]";
  set.about = "One fuzzing process. fusediff fuzz runs several and makes bundles of what they find.";
  set.example = "  fusediff-worker corpus -seed=1 -runs=1000 -ignore_remaining_args=1 --target planted\n";
  set.shown.add_options()("help", "this text");
  add_setup_options(set.shown, 64);
  add_experiment_option(set.shown);
  set.shown.add_options()("out", po::value<std::string>()->value_name("FOLDER")->default_value(""),
                          "the campaign's folder; without it the first finding ends the process");
  set.hidden.add_options()("state", po::value<std::string>()->default_value(""), "")(
      "parent", po::value<std::string>()->default_value(""), "")("merging", po::bool_switch(), "")(
      "tensors", po::value<std::string>()->default_value(""), "");
  return set;
}

Result<std::unique_ptr<Worker>> make_worker(const po::variables_map& values) {
  WorkerOptions wanted;
  const Result<Setup> setup = setup_of(values);
  if (!setup.ok()) return setup.error();
  wanted.setup = *setup;
  wanted.out = values["out"].as<std::string>();
  wanted.merging = values["merging"].as<bool>();
  wanted.tensors = values["tensors"].as<std::string>();
  if (wanted.tensors.empty() && !wanted.out.empty()) wanted.tensors = tensors_folder(wanted.out);
  const std::filesystem::path state_file = values["state"].as<std::string>();
  wanted.name = state_file.empty() ? "alone" : "worker-" + state_file.stem().string();
  if (!wanted.out.empty()) {
    if (Status made = make_directories(found_folder(wanted.out)); !made.ok()) return made.error();
  }
  Result<WorkerState> state = state_file.empty() ? WorkerState::create("") : WorkerState::open(state_file);
  if (!state.ok()) return state.error();
  return Worker::make(std::move(wanted), *std::move(state));
}

// libFuzzer's own defaults are for small inputs that are mutated byte by byte. What the user says comes later and wins.
std::vector<std::string> with_defaults(char** begin, char** end) {
  std::vector<std::string> all = {*begin, "-len_control=0", "-max_len=" + std::to_string(kMaxCaseBytes),
                                  "-report_slow_units=1000000", "-reduce_inputs=0"};
  all.insert(all.end(), begin + 1, end);
  return all;
}

// --arguments=FILE, of a merge: more of them, each ended by a zero. libFuzzer's merge starts its own processes through
// a shell and quotes nothing.
Arguments with_file(Arguments arguments) {
  constexpr std::string_view kFile = "--arguments=";
  if (arguments.empty() || !arguments.back().starts_with(kFile)) return arguments;
  const Result<std::string> text = read_file(arguments.back().substr(kFile.size()), kMaxArguments);
  if (!text.ok()) std::_Exit(fail(text.error()));
  arguments.pop_back();
  for (std::string_view rest = *text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    arguments.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return arguments;
}

void start(int* count, char*** values) {
  char** const end = *values + *count;
  char** const ours =
      std::find_if(*values, end, [](const char* text) { return std::string_view(text) == kOursFollow; });
  const Arguments arguments = with_file(Arguments(ours == end ? end : ours + 1, end));
  const auto parsed = parse_options(options(), arguments);
  if (!parsed.ok()) std::_Exit(fail(parsed.error()));
  if (!*parsed) {
    std::cout << std::flush;
    std::_Exit(kExitClean);
  }
  if (const std::string parent = (**parsed)["parent"].as<std::string>(); !parent.empty()) {
    if (!die_with_parent(std::atoi(parent.c_str()))) std::_Exit(kExitClean);
  }
  Result<std::unique_ptr<Worker>> made = make_worker(**parsed);
  if (!made.ok()) std::_Exit(fail(made.error()));
  worker = *std::move(made);
  limit_process(process_bytes(*setup_of(**parsed)));

  static std::vector<std::string> kept;
  static std::vector<char*> pointers;
  kept = with_defaults(*values, end);
  for (std::string& text : kept) pointers.push_back(text.data());
  *count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  *values = pointers.data();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** values) {
  start(count, values);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  worker->check({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t capacity,
                                               unsigned seed) {
  return worker->mutate(reinterpret_cast<char*>(data), size, capacity, seed);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size, const std::uint8_t* b,
                                                 std::size_t b_size, std::uint8_t* out, std::size_t capacity,
                                                 unsigned seed) {
  return worker->cross({reinterpret_cast<const char*>(a), a_size}, {reinterpret_cast<const char*>(b), b_size},
                       reinterpret_cast<char*>(out), capacity, seed);
}
