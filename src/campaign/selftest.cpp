#include "campaign/selftest.h"

#include <algorithm>
#include <sstream>

#include "base/files.h"
#include "engine/bundle.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = 1 << 20;
constexpr const char* kFile = "planted.expect";

std::string word_of(const Expectation& expectation, const char* key) {
  const auto at = expectation.find(key);
  return at == expectation.end() ? "" : at->second;
}

std::string in_words(const Expectation& e) {
  std::string text = word_of(e, "class") + " in " + word_of(e, "op");
  for (const char* key : {"stage", "output", "experiment", "relation", "cause"}) {
    const std::string word = word_of(e, key);
    if (!word.empty() && word != "pair") text += std::string(", ") + key + " " + word;
  }
  return text;
}

std::string dims_of(const Case& c) {
  std::string text;
  for (const auto& [name, size] : c.dims) text += (text.empty() ? "" : " ") + name + "=" + std::to_string(size);
  const Experiment& e = c.experiment;
  if (e.kind == ExperimentKind::kThreads) text += ", " + std::to_string(e.count) + " threads";
  if (!e.calls.empty()) text += ", " + std::to_string(e.calls.size()) + " more calls";
  return text;
}

// Writes the findings of a campaign into the row, and says when there is nothing more to wait for.
class Watch {
 public:
  Watch(const Planted& planted, SelftestRow& row, std::atomic<bool>& stop)
      : planted_(planted), row_(row), stop_(stop), seen_(planted.expected.size(), false) {}

  void see(const News& news, double seconds) {
    const auto& expected = planted_.expected;
    if (expected.empty()) {
      row_.missing.push_back(signature_of(news.finding));
      stop_.store(true);
      return;
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (seen_[i] || news.replay.same == 0 || !is_expected(news.finding, expected[i])) continue;
      seen_[i] = true;
      row_.seconds = seconds;
      if (const Result<Bundle> bundle = read_bundle(news.bundle); bundle.ok())
        row_.smallest = dims_of(bundle->smallest);
    }
    if (std::all_of(seen_.begin(), seen_.end(), [](bool seen) { return seen; })) stop_.store(true);
  }

  void end() {
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (!seen_[i]) row_.missing.push_back(in_words(planted_.expected[i]));
    }
    row_.good = row_.missing.empty();
  }

 private:
  const Planted& planted_;
  SelftestRow& row_;
  std::atomic<bool>& stop_;
  std::vector<bool> seen_;
};

}  // namespace

Result<std::vector<Planted>> read_planted(const fs::path& folder) {
  const fs::path file = folder / kFile;
  const Result<std::string> text = read_file(file, kMostBytes);
  if (!text.ok()) return user_error(file.string() + ": " + text.error().what + "; a build of fusediff writes it");
  std::vector<Planted> faults, clean;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    Expectation expectation;
    words >> name;
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      if (equals != std::string::npos) expectation[word.substr(0, equals)] = word.substr(equals + 1);
    }
    if (name.empty() || !expectation.contains("op"))
      return user_error(file.string() + ": \"" + line + "\" is not NAME class=CLASS op=OP ...");
    const std::string target = "planted_" + name;
    if (!expectation.contains("class")) {
      clean.push_back({target, {}});
    } else if (!faults.empty() && faults.back().target == target) {
      faults.back().expected.push_back(std::move(expectation));
    } else {
      faults.push_back({target, {std::move(expectation)}});
      clean.push_back({target + "_clean", {}});
    }
  }
  if (faults.empty()) return user_error(file.string() + ": names no fault; a build of fusediff writes it");
  faults.insert(faults.end(), clean.begin(), clean.end());
  return faults;
}

bool is_expected(const Finding& f, const Expectation& e) {
  const auto is = [&](const char* key, const std::string& value) {
    const std::string word = word_of(e, key);
    return word.empty() || word == value;
  };
  const std::string stage = word_of(e, "stage");
  const bool stage_is = stage.empty() || f.output == stage ||
                        std::find(f.stage_outputs.begin(), f.stage_outputs.end(), stage) != f.stage_outputs.end();
  const std::string relation = word_of(e, "relation");
  std::string cause = word_of(e, "cause");
  std::replace(cause.begin(), cause.end(), '_', ' ');
  return is("class", std::string(name_of(f.cls))) && is("op", f.op) && is("output", f.output) && stage_is &&
         is("experiment", f.experiment) && f.relation.starts_with(relation) &&
         f.conclusion.find(cause) != std::string::npos;
}

Result<SelftestRow> prove(const Planted& planted, FuzzOptions campaign, std::uint64_t seed, double seconds,
                          const std::atomic<bool>& interrupted) {
  SelftestRow row;
  row.target = planted.target;
  row.seed = seed;
  for (const Expectation& expectation : planted.expected)
    row.expected += (row.expected.empty() ? "" : " and ") + in_words(expectation);
  if (row.expected.empty()) row.expected = "nothing";
  campaign.seed = seed;
  campaign.seconds = seconds;
  std::atomic<bool> stop{false};
  Watch watch(planted, row, stop);
  double now = 0;
  FuzzHooks hooks;
  hooks.status = [&](const FuzzStatus& status) {
    now = status.seconds;
    if (interrupted.load()) stop.store(true);
  };
  hooks.finding = [&](const News& news) { watch.see(news, now); };
  const Result<FuzzResult> result = fuzz(campaign, stop, hooks);
  if (!result.ok()) return result.error();
  watch.end();
  row.checks = result->status.counts.checks;
  if (planted.expected.empty()) row.seconds = result->status.seconds;
  return row;
}

}  // namespace fusediff
