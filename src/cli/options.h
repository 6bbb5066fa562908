// Options of the command line: reading them, with one clear line for what is wrong, and the groups that several
// programs share. The only place that reads the environment, together with the worker's.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "campaign/child.h"
#include "campaign/setup.h"
#include "cli/command.h"

namespace fusediff {

namespace po = boost::program_options;

// What a command takes. Everything that is not an option goes to `rest`, where a command names it.
struct OptionSet {
  std::string usage;    // "fusediff check CASE... [options]"
  std::string about;    // a sentence or two
  std::string example;  // lines that work when pasted
  po::options_description shown;
  po::options_description hidden;
  std::string rest;  // name of the positional arguments in messages; "": none are taken
};

// The parsed options; nothing when --help was asked for and printed.
Result<std::optional<po::variables_map>> parse_options(const OptionSet& set, const Arguments& arguments);
std::vector<std::string> rest_of(const po::variables_map& values);

// --target, --against and the rest of what a Setup holds. memory: the default, in MiB.
void add_setup_options(po::options_description& options, std::uint64_t memory);
// --experiment, which setup_of() reads where it is there.
void add_experiment_option(po::options_description& options);
Result<Setup> setup_of(const po::variables_map& values);
// The same setup, as a worker's or a child's command line spells it.
Arguments arguments_of(const Setup& setup);
// How to start a child of this program that opens the setup.
ChildOptions child_options(const Setup& setup);

// "90", "90s", "15m", "8h": seconds, above zero.
Result<double> seconds_of(const std::string& option, const std::string& text);
// A whole number from low to high.
Result<std::uint64_t> number_of(const std::string& option, const std::string& text, std::uint64_t low,
                                std::uint64_t high);
// --format: true for json.
Result<bool> is_json(const po::variables_map& values);
void add_format_option(po::options_description& options);

// Where bare names of targets are looked for: beside this program, then in FUSEDIFF_TARGETS.
std::vector<std::filesystem::path> target_folders();
// fusediff-worker beside this program; an error says what it takes to build it.
Result<std::string> worker_program();
// The folder that this program stands in.
std::filesystem::path program_folder();

}  // namespace fusediff
