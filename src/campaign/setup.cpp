#include "campaign/setup.h"

#include <algorithm>

#include "model/quote.h"

namespace fusediff {
namespace {

constexpr std::string_view kBuiltin = "builtin";
constexpr std::string_view kFused = "fused";
constexpr std::string_view kUnfused = "unfused";

struct Spelling {
  std::string library;
  std::string path;
};

// "NAME_OR_PATH[:path]": a colon with a slash behind it belongs to the file name.
Spelling split(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || text.find('/', colon) != std::string::npos) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::vector<std::string> paths_of(const Schema& schema) {
  std::vector<std::string> paths;
  for (const Operator& op : schema.operators) {
    for (const std::string& path : op.paths) {
      if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
    }
  }
  return paths;
}

std::vector<std::string> names_of(const Schema& schema) {
  std::vector<std::string> names;
  for (const Operator& op : schema.operators) names.push_back(op.name);
  return names;
}

Status check_path(const Target& target, const std::string& path, const char* option) {
  const std::vector<std::string> paths = paths_of(target.schema);
  if (std::find(paths.begin(), paths.end(), path) != paths.end()) return {};
  return user_error(std::string(option) + ": " + target.name + ": " +
                    not_one_of(path, "a path of any of its operators", paths));
}

// The operators that --op leaves, all of the target's where it is not given.
Result<std::vector<const Operator*>> wanted_ops(const Schema& schema, const std::vector<std::string>& names) {
  std::vector<const Operator*> ops;
  for (const std::string& name : names) {
    if (schema.find(name) == nullptr) {
      return user_error("--op: " + not_one_of(name, "an operator of the target", names_of(schema)));
    }
  }
  for (const Operator& op : schema.operators) {
    if (names.empty() || std::find(names.begin(), names.end(), op.name) != names.end()) ops.push_back(&op);
  }
  return ops;
}

bool all_have(const std::vector<const Operator*>& ops, std::string_view path) {
  return std::all_of(ops.begin(), ops.end(), [&](const Operator* op) { return op->has_path(path); });
}

// The path of the target side: what was named, else `fused`, else its first.
std::string target_path(const Target& target, const std::string& named) {
  if (!named.empty()) return named;
  const std::vector<std::string> paths = paths_of(target.schema);
  const bool has_fused = std::find(paths.begin(), paths.end(), kFused) != paths.end();
  return has_fused || paths.empty() ? std::string(kFused) : paths.front();
}

Status open_against(OpenedSetup& opened, const Setup& setup, const std::vector<const Operator*>& ops) {
  PathOf& target = opened.comparison.sides[index_of(Side::kTarget)];
  PathOf& against = opened.comparison.sides[index_of(Side::kAgainst)];
  const Target* fallback = opened.comparison.fallback;
  if (setup.against.empty()) {
    const bool own = all_have(ops, kUnfused) && target.path != kUnfused;
    against = {own || fallback == nullptr ? target.target : fallback, std::string(kUnfused)};
  } else {
    const Spelling spelling = split(setup.against);
    const Result<const Target*> loaded = opened.loader->load(spelling.library, load_options(setup, Side::kAgainst));
    if (!loaded.ok()) return loaded.error();
    against = {*loaded, spelling.path.empty() ? std::string(kUnfused) : spelling.path};
  }
  if (Status good = check_path(*against.target, against.path, "--against"); !good.ok()) return good;
  if (against.target == target.target && against.path == target.path) {
    return user_error("--against: " + against.target->name + ":" + against.path +
                      " is the same path as --target; another path or another target is needed");
  }
  return {};
}

}  // namespace

std::uint64_t process_bytes(const Setup& setup) { return 8 * setup.memory + (std::uint64_t{1} << 30); }

CheckOptions check_options(const Setup& setup) {
  CheckOptions options;
  options.seconds = setup.seconds;
  options.max_bytes = setup.memory;
  options.outside = setup.outside;
  options.keep_context = setup.keep_context;
  return options;
}

LoadOptions load_options(const Setup& setup, Side side) {
  const bool target = side == Side::kTarget;
  const bool one_library = split(setup.target).library == split(setup.against).library;
  LoadOptions how;
  how.options = target ? setup.target_option : setup.against_option;
  how.isolate = setup.isolate || (one_library && setup.target_option != setup.against_option);
  how.environment = target ? setup.target_environment : setup.against_environment;
  return how;
}

Result<OpenedSetup> open_setup(const Setup& setup) {
  OpenedSetup opened;
  opened.loader = std::make_unique<TargetLoader>(setup.folders);
  const Spelling spelling = split(setup.target);
  const Result<const Target*> loaded = opened.loader->load(spelling.library, load_options(setup, Side::kTarget));
  if (!loaded.ok()) return loaded.error();
  const Target& target = **loaded;
  const Result<const Target*> builtin = target.name == kBuiltin ? loaded : opened.loader->load(kBuiltin);
  if (builtin.ok()) opened.comparison.fallback = *builtin;
  opened.comparison.sides[index_of(Side::kTarget)] = {&target, target_path(target, spelling.path)};
  const std::string& path = opened.comparison.sides[index_of(Side::kTarget)].path;
  if (Status good = check_path(target, path, "--target"); !good.ok()) return good.error();

  const Result<std::vector<const Operator*>> wanted = wanted_ops(target.schema, setup.ops);
  if (!wanted.ok()) return wanted.error();
  if (Status good = open_against(opened, setup, *wanted); !good.ok()) return good.error();

  const PathOf& against = opened.comparison.sides[index_of(Side::kAgainst)];
  for (const Operator* op : *wanted) {
    const Operator* other = against.target->schema.find(op->name);
    const bool both = op->has_path(path) && other != nullptr && other->has_path(against.path);
    if (both) {
      opened.ops.push_back(op);
    } else {
      opened.left_out.push_back(op->name);
    }
  }
  if (opened.ops.empty()) {
    return user_error("nothing to compare: " + target.name + ":" + path + " and " + against.target->name + ":" +
                      against.path + " share no operator (" + list_of(opened.left_out) + ")");
  }
  return opened;
}

}  // namespace fusediff
