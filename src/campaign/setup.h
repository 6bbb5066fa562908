// What is compared, as the user spelled it, and the targets opened for it. Loads libraries: only a process that may die
// of them calls open_setup(). Reading the command line is in src/cli.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/check.h"
#include "target/target.h"

namespace fusediff {

struct Setup {
  std::string target = "builtin";  // NAME_OR_PATH[:path]
  std::string against;             // likewise; "": see open_setup()
  std::string target_option;       // for the targets' open()
  std::string against_option;
  bool isolate = false;                         // both sides in processes of their own
  std::vector<std::string> target_environment;  // "NAME=VALUE", of that side's process: not empty means isolate
  std::vector<std::string> against_environment;
  std::vector<std::filesystem::path> folders;     // where a bare name is looked for
  std::vector<std::string> ops;                   // empty: all that both sides offer
  std::vector<ExperimentKind> experiments;        // that are made; empty: all
  double seconds = 10;                            // of one run
  std::uint64_t memory = std::uint64_t{1} << 30;  // bytes of all tensors of a run
  bool outside = false;
  bool keep_context = false;
};

// The cap on the data of a process that checks with this setup: the two sides' buffers, drawn inputs, kept outputs and
// the f64 truth, and room for the libraries.
std::uint64_t process_bytes(const Setup& setup);

// Targets that are open, and which of their operators are compared. Lives as long as anything made of it.
struct OpenedSetup {
  std::unique_ptr<TargetLoader> loader;
  Comparison comparison;
  std::vector<const Operator*> ops;   // of the target's schema, in its order; never empty
  std::vector<std::string> left_out;  // operators of the target that the against side does not offer
};

// Where no path is named: `fused` on the target side if it has one, `unfused` on the other. Where no --against is
// named: the target's own other path where each operator has it, else the built-in target's. Errors are the user's.
Result<OpenedSetup> open_setup(const Setup& setup);

CheckOptions check_options(const Setup& setup);

// How that side's target is loaded. Where both sides name one library but with different options, each has a process of
// its own: a library may read its settings once a process.
LoadOptions load_options(const Setup& setup, Side side);

}  // namespace fusediff
