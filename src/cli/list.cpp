// fusediff list: what the targets offer.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "campaign/ask.h"
#include "cli/options.h"
#include "target/target.h"

namespace fusediff {
namespace {

OptionSet options() {
  OptionSet set;
  set.usage = "fusediff list [--target NAME_OR_FILE]";
  set.about =
      "Says what each target offers: operators, their paths, the range of every dim that is tried, and the dtypes of\n"
      "the inputs that have a choice. Without --target: all targets of the folder beside this program and of the\n"
      "folders in FUSEDIFF_TARGETS (a list with colons).";
  set.example = "  fusediff list --target builtin\n";
  set.shown.add_options()("help", "this text");
  set.shown.add_options()("target", po::value<std::string>()->value_name("NAME"), "a target's name or .so file");
  add_format_option(set.shown);
  return set;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
  return all;
}

void print_text(const ListAnswer& target) {
  std::cout << target.target << " " << target.version << "  " << target.file << "\n";
  for (const ListAnswer::Entry& op : target.operators) {
    std::cout << "  " << op.name << ": " << joined(op.paths, ", ") << "\n";
    if (!op.dims.empty()) std::cout << "    dims   " << joined(op.dims, ", ") << "\n";
    if (!op.dtypes.empty()) std::cout << "    dtypes " << joined(op.dtypes, ", ") << "\n";
  }
}

void print_json(const ListAnswer& target) {
  nlohmann::ordered_json operators = nlohmann::ordered_json::array();
  for (const ListAnswer::Entry& op : target.operators) {
    operators.push_back({{"name", op.name}, {"paths", op.paths}, {"dims", op.dims}, {"dtypes", op.dtypes}});
  }
  const nlohmann::ordered_json line = {
      {"target", target.target}, {"version", target.version}, {"file", target.file}, {"operators", operators}};
  std::cout << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

Result<ListAnswer> ask(Setup setup, const std::string& target) {
  setup.target = target;
  Child child(child_options(setup));
  return list_in_child(child, setup.seconds);
}

}  // namespace

int run_list(const Arguments& arguments) {
  const OptionSet set = options();
  const auto parsed = parse_options(set, arguments);
  if (!parsed.ok()) return fail(parsed.error());
  if (!*parsed) return kExitClean;
  Setup setup;
  setup.folders = target_folders();
  const Result<bool> json = is_json(**parsed);
  if (!json.ok()) return fail(json.error());

  std::vector<std::string> targets = TargetLoader(setup.folders).available();
  if ((*parsed)->count("target") != 0) targets = {(**parsed)["target"].as<std::string>()};
  if (targets.empty()) {
    return fail(user_error("list: no target is there: a .so file in " + setup.folders.front().string() +
                           " or in a folder of FUSEDIFF_TARGETS is needed"));
  }
  int code = kExitClean;
  for (const std::string& target : targets) {
    const Result<ListAnswer> answer = ask(setup, target);
    if (!answer.ok()) {
      code = std::max(code, fail(answer.error()));
    } else if (*json) {
      print_json(*answer);
    } else {
      print_text(*answer);
    }
  }
  return code;
}

}  // namespace fusediff
