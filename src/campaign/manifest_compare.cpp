#include "campaign/manifest_compare.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "model/number_text.h"
#include "model/quote.h"
#include "oracle/bits.h"

namespace fusediff {
namespace {

using Json = nlohmann::ordered_json;
using Key = std::tuple<std::string, std::string>;  // case hash, side
using Lines = std::map<Key, std::vector<const ManifestLine*>>;

constexpr int kComparisonVersion = 1;
constexpr std::size_t kMostNamed = 20;  // files and changes in the text; the JSON has all
constexpr std::size_t kBlockDigits = 16;

Lines by_key(const Manifest& manifest) {
  Lines lines;
  for (const ManifestLine& line : manifest.lines) lines[{line.case_hash, line.side}].push_back(&line);
  return lines;
}

std::int64_t elements_of(const ManifestOutput& output) {
  std::int64_t elements = 1;
  for (const std::int64_t size : output.shape) elements *= std::max<std::int64_t>(size, 0);
  return elements;
}

// Where two outputs of equal shape and dtype differ first.
struct Where {
  bool agreed = false;
  std::optional<std::int64_t> first;
  std::array<std::string, 2> values;
  std::array<std::int64_t, 2> range = {0, -1};
};

Where where_of(const ManifestOutput& a, const ManifestOutput& b) {
  Where where;
  if (a.bits && b.bits && a.bits->size() == b.bits->size()) {
    const std::size_t size = size_of(a.dtype);
    for (std::size_t at = 0; at < a.bits->size(); at += size) {
      const std::uint64_t x = load_bits(a.dtype, a.bits->data() + at), y = load_bits(a.dtype, b.bits->data() + at);
      const ElementDifference d = compare_elements(a.dtype, x, y, b.agreed);
      if (d == ElementDifference::kNone || d == ElementDifference::kAgreed) continue;
      if (d == ElementDifference::kNanBits && !b.nan_bits) continue;
      where.first = static_cast<std::int64_t>(at / size);
      where.values = {decimal(a.dtype, x) + " (" + hex(a.dtype, x) + ")",
                      decimal(a.dtype, y) + " (" + hex(a.dtype, y) + ")"};
      return where;
    }
    where.agreed = true;
    return where;
  }
  const bool alike = a.block_elements == b.block_elements && a.blocks.size() == b.blocks.size();
  for (std::size_t at = 0; alike && at < a.blocks.size(); at += kBlockDigits) {
    if (a.blocks.compare(at, kBlockDigits, b.blocks, at, kBlockDigits) == 0) continue;
    const auto begin = static_cast<std::int64_t>(at / kBlockDigits) * a.block_elements;
    where.range = {begin, std::min(begin + a.block_elements, elements_of(a)) - 1};
    return where;
  }
  return where;
}

// As a terminal may show it: quoted where there is a control character in it.
std::string plain(const std::string& text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  return std::any_of(text.begin(), text.end(), is_control) ? quote(text) : text;
}

std::string named(const ManifestLine& line) {
  return line.file + " (" + line.dims + ", " + line.case_hash.substr(0, 8) + ")";
}

class Comparing {
 public:
  Comparing(const Manifest& before, const Manifest& after) : before_(before), after_(after) {}

  ManifestComparison run() {
    compare_headers();
    const Lines old_lines = by_key(before_), new_lines = by_key(after_);
    std::array<std::map<std::string, std::string>, 2> cases = {cases_of(before_), cases_of(after_)};
    for (std::size_t i = 0; i < 2; ++i) {
      for (const auto& [hash, file] : cases[i]) {
        if (!cases[1 - i].contains(hash)) result_.only[i].push_back(file);
      }
      std::sort(result_.only[i].begin(), result_.only[i].end());
    }
    for (const auto& [hash, file] : cases[0]) result_.cases += cases[1].contains(hash) ? 1 : 0;
    for (const auto& [key, lines] : old_lines) {
      const auto at = new_lines.find(key);
      if (at != new_lines.end()) compare_side(lines, at->second);
    }
    for (auto& [key, group] : groups_) result_.groups.push_back(std::move(group));
    return std::move(result_);
  }

 private:
  static std::map<std::string, std::string> cases_of(const Manifest& manifest) {
    std::map<std::string, std::string> cases;
    for (const ManifestLine& line : manifest.lines) cases.emplace(line.case_hash, line.file);
    return cases;
  }

  void compare_headers() {
    const std::array<const char*, 2> sides = {"target", "against"};
    const auto note = [&](const std::string& what, const std::string& a, const std::string& b) {
      if (a != b) result_.set_up.push_back(what + ": " + a + " -> " + b);
    };
    for (std::size_t s = 0; s < 2; ++s) {
      note(sides[s], before_.targets[s] + " " + before_.versions[s] + ":" + before_.paths[s],
           after_.targets[s] + " " + after_.versions[s] + ":" + after_.paths[s]);
    }
    const Json a = Json::parse(before_.environment, nullptr, false),
               b = Json::parse(after_.environment, nullptr, false);
    if (!a.is_object() || !b.is_object()) return;
    for (const char* key : {"fusediff", "compiler", "os", "machine", "distribution", "cpu"}) {
      const auto text = [&](const Json& json) {
        return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
      };
      note(key, text(a), text(b));
    }
    compare_flags(a, b);
  }

  void compare_flags(const Json& a, const Json& b) {
    const auto flags = [](const Json& json) {
      std::set<std::string> all;
      const auto at = json.find("cpu_flags");
      std::string rest = at != json.end() && at->is_string() ? at->get<std::string>() : "";
      while (!rest.empty()) {
        const std::size_t end = std::min(rest.find(' '), rest.size());
        if (end > 0) all.insert(rest.substr(0, end));
        rest.erase(0, end + 1);
      }
      return all;
    };
    const std::set<std::string> before = flags(a), after = flags(b);
    std::string gone, come;
    for (const std::string& flag : before) gone += after.contains(flag) ? "" : " -" + flag;
    for (const std::string& flag : after) come += before.contains(flag) ? "" : " +" + flag;
    if (!(gone + come).empty()) result_.set_up.push_back("cpu flags:" + gone + come);
  }

  void change(const ManifestLine& line, std::string what) {
    result_.changes.push_back({line.op, line.file, line.case_hash, line.side, std::move(what)});
  }

  void compare_side(const std::vector<const ManifestLine*>& old_lines,
                    const std::vector<const ManifestLine*>& new_lines) {
    const ManifestLine& a = *old_lines.front();
    const ManifestLine& b = *new_lines.front();
    if (a.status != b.status) return change(b, "status " + plain(a.status) + " -> " + plain(b.status));
    if (a.inputs != b.inputs)
      return change(b, "received other inputs: what it is given is computed by another path, or drawn otherwise");
    for (const ManifestLine* line : old_lines) {
      if (!line->output) continue;
      const auto same_name = [&](const ManifestLine* other) {
        return other->output && other->output->name == line->output->name;
      };
      const auto at = std::find_if(new_lines.begin(), new_lines.end(), same_name);
      if (at == new_lines.end()) {
        change(*line, "output " + plain(line->output->name) + " is not given any more");
      } else {
        compare_output(*line, **at);
      }
    }
    for (const ManifestLine* line : new_lines) {
      const auto same_name = [&](const ManifestLine* other) {
        return other->output && line->output && other->output->name == line->output->name;
      };
      if (line->output && std::none_of(old_lines.begin(), old_lines.end(), same_name))
        change(*line, "output " + plain(line->output->name) + " is new");
    }
  }

  void compare_output(const ManifestLine& a, const ManifestLine& b) {
    const ManifestOutput& x = *a.output;
    const ManifestOutput& y = *b.output;
    const std::string dtype(name_of(y.dtype));
    ManifestGroup& group = groups_[{b.op, b.side, y.name, dtype}];
    group.op = b.op, group.side = b.side, group.output = y.name, group.dtype = dtype;
    if (x.dtype != y.dtype || x.shape != y.shape)
      return change(b, "output " + plain(y.name) + " has another shape or dtype");
    if (x.hash == y.hash) {
      ++group.same;
      return;
    }
    if (!a.deterministic || !b.deterministic) {
      ++group.not_deterministic;
      return;
    }
    const Where where = where_of(x, y);
    if (where.agreed) {
      ++group.agreed;
      return;
    }
    ++group.changed;
    if (!where.first && y.agreed > 0) ++group.unchecked;
    // The first example with values is worth more than one without.
    if (!group.example.empty() && (group.first || !where.first)) return;
    group.example = named(b);
    group.first = where.first;
    group.values = where.values;
    group.range = where.range;
  }

  const Manifest& before_;
  const Manifest& after_;
  ManifestComparison result_;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, ManifestGroup> groups_;
};

void list(std::string& text, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) text += "  " + plain(names[i]) + "\n";
  if (names.size() > kMostNamed) text += "  and " + std::to_string(names.size() - kMostNamed) + " more\n";
}

std::string counts_of(const ManifestGroup& group) {
  std::string text = std::to_string(group.changed) + " of " +
                     std::to_string(group.changed + group.same + group.agreed + group.not_deterministic) + " changed";
  if (group.unchecked > 0)
    text += " (" + std::to_string(group.unchecked) + " too large to tell whether within agreement)";
  if (group.agreed > 0) text += ", " + std::to_string(group.agreed) + " within agreement";
  if (group.not_deterministic > 0)
    text += ", " + std::to_string(group.not_deterministic) + " differ on a path that is not deterministic";
  return text;
}

}  // namespace

bool ManifestComparison::is_changed() const {
  return !changes.empty() ||
         std::any_of(groups.begin(), groups.end(), [](const ManifestGroup& g) { return g.changed > 0; });
}

ManifestComparison compare(const Manifest& before, const Manifest& after) { return Comparing(before, after).run(); }

std::string describe(const ManifestComparison& comparison) {
  std::string text;
  for (const std::string& line : comparison.set_up) text += "between the two: " + plain(line) + "\n";
  std::int64_t same = 0;
  for (const ManifestGroup& group : comparison.groups) {
    same += group.same;
    if (group.changed + group.agreed + group.not_deterministic == 0) continue;
    text += plain(group.op) + " " + plain(group.output) + " " + group.dtype + ", " + plain(group.side) + ": " +
            counts_of(group) + "\n";
    if (group.changed == 0) continue;
    text += "  " + plain(group.example) + "\n";
    if (group.first) {
      text +=
          "  first at index " + std::to_string(*group.first) + ": " + group.values[0] + " -> " + group.values[1] + "\n";
    } else if (group.range[1] >= group.range[0]) {
      text +=
          "  first at an index from " + std::to_string(group.range[0]) + " to " + std::to_string(group.range[1]) + "\n";
    }
  }
  std::vector<std::string> changes;
  for (const ManifestChange& c : comparison.changes)
    changes.push_back(plain(c.op) + ", " + plain(c.side) + ": " + c.what + ": " + plain(c.file));
  if (!changes.empty()) text += "other changes:\n";
  list(text, changes);
  const std::array<const char*, 2> which = {"only in the old manifest", "only in the new one"};
  for (std::size_t i = 0; i < 2; ++i) {
    if (comparison.only[i].empty()) continue;
    text += std::to_string(comparison.only[i].size()) + " cases " + which[i] + ":\n";
    list(text, comparison.only[i]);
  }
  return text + std::to_string(comparison.cases) + " cases in both, " + std::to_string(same) +
         " outputs with the same bits: " + (comparison.is_changed() ? "changed" : "nothing changed") + "\n";
}

std::string write_comparison(const ManifestComparison& comparison) {
  Json json = {{"fusediff_manifest_comparison", kComparisonVersion},
               {"changed", comparison.is_changed()},
               {"cases", comparison.cases},
               {"set_up", comparison.set_up},
               {"groups", Json::array()},
               {"changes", Json::array()},
               {"only_in_old", comparison.only[0]},
               {"only_in_new", comparison.only[1]}};
  for (const ManifestGroup& g : comparison.groups) {
    Json group = {{"op", g.op},
                  {"side", g.side},
                  {"output", g.output},
                  {"dtype", g.dtype},
                  {"same", g.same},
                  {"changed", g.changed},
                  {"agree_not_checked", g.unchecked},
                  {"within_agree", g.agreed},
                  {"not_deterministic", g.not_deterministic}};
    if (g.changed > 0) {
      group["example"] = g.example;
      group["first"] = g.first ? Json(*g.first) : Json(nullptr);
      if (g.first) group["values"] = g.values;
      if (!g.first && g.range[1] >= g.range[0]) group["range"] = g.range;
    }
    json["groups"].push_back(std::move(group));
  }
  for (const ManifestChange& c : comparison.changes) {
    json["changes"].push_back(
        {{"op", c.op}, {"side", c.side}, {"case", c.case_hash}, {"file", c.file}, {"what", c.what}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fusediff
