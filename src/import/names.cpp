#include "import/names.h"

#include <algorithm>

#include "model/quote.h"

namespace fusediff {
namespace {

enum class Part { kSource, kOutput, kAttr };

struct Wanted {
  std::string name;  // of the tensor
  std::string ours;
  Part part;
};

std::vector<std::string> source_names(const Operator& op) {
  std::vector<std::string> names;
  for (const InputRule& rule : op.inputs) names.push_back(rule.name);
  for (const InputRule& rule : op.given) names.push_back(rule.name);
  return names;
}

std::vector<Wanted> wanted_names(const Operator& op, const std::map<std::string, std::string>& names) {
  std::vector<Wanted> wanted;
  for (const std::string& ours : source_names(op)) {
    const auto stated = names.find(ours);
    wanted.push_back({stated == names.end() ? ours : stated->second, ours, Part::kSource});
  }
  const auto taken = [&wanted](const std::string& name) {
    return std::any_of(wanted.begin(), wanted.end(), [&](const Wanted& one) { return one.name == name; });
  };
  for (const OutputRule& rule : op.outputs) {
    if (!taken(rule.name)) wanted.push_back({rule.name, rule.name, Part::kOutput});
  }
  for (const AttrRule& rule : op.attrs) {
    if (!taken(rule.name)) wanted.push_back({rule.name, rule.name, Part::kAttr});
  }
  return wanted;
}

std::map<std::string, std::size_t>& part_of(TensorGroup& group, Part part) {
  return part == Part::kSource ? group.sources : part == Part::kOutput ? group.outputs : group.attrs;
}

Status check_names(const std::vector<std::string>& pool, const Operator& op,
                   const std::map<std::string, std::string>& names, std::string_view separator) {
  const std::vector<std::string> inputs = source_names(op);
  for (const auto& [ours, theirs] : names) {
    if (std::find(inputs.begin(), inputs.end(), ours) == inputs.end()) {
      return user_error("--map: " + not_one_of(ours, "an input of " + op.name, inputs));
    }
    const std::string ending = std::string(separator) + theirs;
    const bool there = std::any_of(pool.begin(), pool.end(), [&, &theirs = theirs](const std::string& name) {
      return name == theirs || (!separator.empty() && name.ends_with(ending));
    });
    if (!there) return user_error("--map: " + not_one_of(theirs, "a tensor that is there", pool));
  }
  return {};
}

}  // namespace

Result<Matching> match_names(const std::vector<std::string>& pool, const Operator& op,
                             const std::map<std::string, std::string>& names, std::string_view separator) {
  if (Status known = check_names(pool, op, names, separator); !known.ok()) return known.error();
  const std::vector<Wanted> wanted = wanted_names(op, names);
  Matching matching;
  TensorGroup shared;
  std::map<std::string, std::size_t> positions;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    bool used = false;
    for (const Wanted& one : wanted) {
      const bool whole = pool[i] == one.name;
      const std::string ending = std::string(separator) + one.name;
      if (!whole && (separator.empty() || !pool[i].ends_with(ending))) continue;
      used = true;
      if (whole) {
        part_of(shared, one.part)[one.ours] = i;
        continue;
      }
      const std::string prefix = pool[i].substr(0, pool[i].size() - ending.size());
      const auto [at, added] = positions.try_emplace(prefix, matching.groups.size());
      if (added) matching.groups.push_back({prefix, {}, {}, {}});
      part_of(matching.groups[at->second], one.part)[one.ours] = i;
    }
    if (!used) matching.unused.push_back(i);
  }
  std::erase_if(matching.groups, [](const TensorGroup& group) { return group.sources.empty(); });
  if (matching.groups.empty()) {
    if (shared.sources.empty()) {
      return user_error("no tensor has the name of an input of " + op.name + " (" + list_of(source_names(op)) +
                        "): there are " + list_of(pool) + "; --map INPUT=NAME says which is which");
    }
    matching.groups.push_back(shared);
    return matching;
  }
  for (TensorGroup& group : matching.groups) {
    group.sources.insert(shared.sources.begin(), shared.sources.end());
    group.outputs.insert(shared.outputs.begin(), shared.outputs.end());
    group.attrs.insert(shared.attrs.begin(), shared.attrs.end());
  }
  return matching;
}

}  // namespace fusediff
