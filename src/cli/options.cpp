#include "cli/options.h"

#include <unistd.h>

#include <boost/program_options/parsers.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <system_error>

#include "model/quote.h"

namespace fusediff {
namespace {

constexpr const char* kRest = "rest";
constexpr std::uint64_t kMaxMemory = std::uint64_t{1} << 24;  // MiB: 16 TiB

std::string text_of(const po::variables_map& values, const char* name) {
  return values.count(name) == 0 ? "" : values[name].as<std::string>();
}

std::vector<std::string> names_of(const po::options_description& options) {
  std::vector<std::string> names;
  for (const auto& option : options.options()) names.push_back("--" + option->long_name());
  return names;
}

void print_help(const OptionSet& set) {
  std::cout << "usage: " << set.usage << "\n\n" << set.about << "\n\n" << set.shown << "\nexample:\n" << set.example;
}

Error explain(const po::error& thrown, const OptionSet& set) {
  if (const auto* unknown = dynamic_cast<const po::unknown_option*>(&thrown)) {
    return user_error(not_one_of(unknown->get_option_name(), "an option here", names_of(set.shown)));
  }
  std::string what = thrown.what();
  if (const auto* option = dynamic_cast<const po::error_with_option_name*>(&thrown)) {
    const std::string name = option->get_option_name();
    if (dynamic_cast<const po::multiple_occurrences*>(&thrown) != nullptr) {
      what = name + ": is given more than once; once is right";
    } else if (dynamic_cast<const po::invalid_command_line_syntax*>(&thrown) != nullptr) {
      what = name + ": needs a value after it, or takes none; see --help";
    }
  }
  return user_error(what);
}

Status read_experiments(const po::variables_map& values, Setup& setup) {
  if (values.count("experiment") == 0) return {};
  for (const std::string& name : values["experiment"].as<std::vector<std::string>>()) {
    const std::optional<ExperimentKind> kind = experiment_named(name);
    if (kind) {
      setup.experiments.push_back(*kind);
      continue;
    }
    std::vector<std::string> known;
    for (int k = 0; k < kExperimentKindCount; ++k) known.emplace_back(name_of(static_cast<ExperimentKind>(k)));
    return user_error("--experiment: " + not_one_of(name, "an experiment", known));
  }
  return {};
}

Result<std::vector<std::string>> environment_of(const po::variables_map& values, const char* name) {
  if (values.count(name) == 0) return std::vector<std::string>();
  const auto& lines = values[name].as<std::vector<std::string>>();
  for (const std::string& line : lines) {
    if (line.find('=') == 0 || line.find('=') == std::string::npos) {
      return user_error("--" + std::string(name) + ": " + quote(line) + " is no NAME=VALUE");
    }
  }
  return lines;
}

}  // namespace

Result<std::optional<po::variables_map>> parse_options(const OptionSet& set, const Arguments& arguments) {
  po::options_description all;
  all.add(set.shown).add(set.hidden);
  po::positional_options_description positional;
  po::options_description rest;
  rest.add_options()(kRest, po::value<std::vector<std::string>>());
  all.add(rest);
  positional.add(kRest, -1);
  po::variables_map values;
  try {
    namespace style = po::command_line_style;
    const int wanted = style::unix_style & ~style::allow_guessing & ~style::allow_short;
    po::store(po::command_line_parser(arguments).options(all).positional(positional).style(wanted).run(), values);
    po::notify(values);
  } catch (const po::error& thrown) {
    return explain(thrown, set);
  }
  if (values.count("help") != 0) {
    print_help(set);
    return std::optional<po::variables_map>();
  }
  const std::vector<std::string> others = rest_of(values);
  for (const std::string& other : others) {
    if (other.size() > 1 && other.front() == '-')
      return user_error(not_one_of(other, "an option here", names_of(set.shown)));
  }
  if (set.rest.empty() && !others.empty()) {
    return user_error(quote(others.front()) + ": this command takes options only; see --help");
  }
  return std::optional(values);
}

std::vector<std::string> rest_of(const po::variables_map& values) {
  return values.count(kRest) == 0 ? std::vector<std::string>() : values[kRest].as<std::vector<std::string>>();
}

void add_setup_options(po::options_description& options, std::uint64_t memory) {
  options.add_options()  //
      ("target", po::value<std::string>()->value_name("NAME[:PATH]"),
       "what is tested: a target's name, .so or .py file, and the path of its operators (builtin; its fused path)")  //
      ("against", po::value<std::string>()->value_name("NAME[:PATH]"),
       "what it is compared with (the target's own unfused path, else the built-in one)")                        //
      ("target-option", po::value<std::string>()->value_name("TEXT"), "handed to the target when it is opened")  //
      ("against-option", po::value<std::string>()->value_name("TEXT"), "likewise, for the other side")           //
      ("isolate", po::bool_switch(), "run targets in processes of their own; Python targets always are")         //
      ("target-env", po::value<std::vector<std::string>>()->value_name("NAME=VALUE"),
       "environment variable of the target's own process (means --isolate for it); may be repeated")  //
      ("against-env", po::value<std::vector<std::string>>()->value_name("NAME=VALUE"),
       "likewise, for the other side")                                                                        //
      ("op", po::value<std::vector<std::string>>()->value_name("OP"), "only this operator; may be repeated")  //
      ("timeout", po::value<std::string>()->value_name("TIME")->default_value("10"),
       "of one run of one path, before it counts as a hang")  //
      ("memory", po::value<std::string>()->value_name("MIB")->default_value(std::to_string(memory)),
       "of all tensors of one run; the process may take eight times as much and a GiB")                         //
      ("keep-context", po::bool_switch(), "keep the targets' contexts open between runs: faster, less strict")  //
      ("outside", po::bool_switch(), "also call what the schema forbids: it must be rejected");
}

void add_experiment_option(po::options_description& options) {
  options.add_options()("experiment", po::value<std::vector<std::string>>()->value_name("NAME"),
                        "only this one of pair, repeat, threads, relation, gradient, history; may be repeated");
}

Result<Setup> setup_of(const po::variables_map& values) {
  Setup setup;
  if (values.count("target") != 0) setup.target = text_of(values, "target");
  setup.against = text_of(values, "against");
  setup.target_option = text_of(values, "target-option");
  setup.against_option = text_of(values, "against-option");
  setup.isolate = values["isolate"].as<bool>();
  Result<std::vector<std::string>> environment = environment_of(values, "target-env");
  if (!environment.ok()) return environment.error();
  setup.target_environment = *std::move(environment);
  environment = environment_of(values, "against-env");
  if (!environment.ok()) return environment.error();
  setup.against_environment = *std::move(environment);
  setup.folders = target_folders();
  if (values.count("op") != 0) setup.ops = values["op"].as<std::vector<std::string>>();
  if (Status read = read_experiments(values, setup); !read.ok()) return read.error();
  const Result<double> seconds = seconds_of("--timeout", text_of(values, "timeout"));
  if (!seconds.ok()) return seconds.error();
  setup.seconds = *seconds;
  const Result<std::uint64_t> memory = number_of("--memory", text_of(values, "memory"), 1, kMaxMemory);
  if (!memory.ok()) return memory.error();
  setup.memory = *memory << 20;
  setup.keep_context = values["keep-context"].as<bool>();
  setup.outside = values["outside"].as<bool>();
  if (setup.target.empty()) return user_error("--target: is empty; a name or a .so file is right");
  return setup;
}

Arguments arguments_of(const Setup& setup) {
  Arguments all = {"--target=" + setup.target, "--timeout=" + std::to_string(setup.seconds),
                   "--memory=" + std::to_string(setup.memory >> 20)};
  if (!setup.against.empty()) all.push_back("--against=" + setup.against);
  if (!setup.target_option.empty()) all.push_back("--target-option=" + setup.target_option);
  if (!setup.against_option.empty()) all.push_back("--against-option=" + setup.against_option);
  if (setup.isolate) all.emplace_back("--isolate");
  for (const std::string& line : setup.target_environment) all.push_back("--target-env=" + line);
  for (const std::string& line : setup.against_environment) all.push_back("--against-env=" + line);
  for (const std::string& op : setup.ops) all.push_back("--op=" + op);
  if (setup.keep_context) all.emplace_back("--keep-context");
  if (setup.outside) all.emplace_back("--outside");
  return all;
}

ChildOptions child_options(const Setup& setup) {
  ChildOptions options;
  options.arguments = arguments_of(setup);
  options.arguments.insert(options.arguments.begin(), "serve");
  return options;
}

Result<double> seconds_of(const std::string& option, const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const double scale = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (code != std::errc() || scale == 0 || !(value > 0) || !std::isfinite(value * scale) || value * scale > 1e9) {
    return user_error(option + ": " + quote(text) + " is no time; 90, 90s, 15m and 8h are");
  }
  return value * scale;
}

Result<std::uint64_t> number_of(const std::string& option, const std::string& text, std::uint64_t low,
                                std::uint64_t high) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || value < low || value > high) {
    return user_error(option + ": " + quote(text) + " is not right; a whole number from " + std::to_string(low) +
                      " to " + std::to_string(high) + " is");
  }
  return value;
}

void add_format_option(po::options_description& options) {
  options.add_options()("format", po::value<std::string>()->value_name("text|json")->default_value("text"),
                        "of what goes to stdout");
}

Result<bool> is_json(const po::variables_map& values) {
  const std::string format = text_of(values, "format");
  const std::vector<std::string> formats = {"text", "json"};
  if (format != "text" && format != "json") return user_error("--format: " + not_one_of(format, "a format", formats));
  return format == "json";
}

std::vector<std::filesystem::path> target_folders() {
  std::vector<std::filesystem::path> folders = {program_folder() / "targets"};
  const char* more = std::getenv("FUSEDIFF_TARGETS");
  std::string_view rest = more == nullptr ? "" : more;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return folders;
}

Result<std::string> worker_program() {
  const std::string program = (program_folder() / "fusediff-worker").string();
  if (::access(program.c_str(), X_OK) == 0) return program;
  return user_error(program + ": is not there: fusediff was built without libFuzzer (package libclang-rt-dev)");
}

std::filesystem::path program_folder() {
  std::error_code code;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", code);
  return program.parent_path();
}

}  // namespace fusediff
