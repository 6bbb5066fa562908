// fusediff manifest: what a corpus gives, as hashes, and what changed since another one.
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <system_error>

#include "base/files.h"
#include "campaign/ask.h"
#include "campaign/corpus_files.h"
#include "campaign/environment.h"
#include "campaign/manifest.h"
#include "campaign/manifest_compare.h"
#include "cli/case_check.h"
#include "cli/interrupts.h"
#include "cli/options.h"
#include "model/quote.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{4} << 30;

OptionSet options() {
  OptionSet set;
  set.usage =
      "fusediff manifest CASE_OR_FOLDER... [options]\n"
      "       fusediff manifest --compare OLD [NEW | CASE_OR_FOLDER...] [options]";
  set.about =
      "Runs each case's own call once on both paths and writes JSON lines: a header, then one line a case, side and\n"
      "output with the hash of its bits. With --compare says which outputs have other bits than in OLD: as NEW has\n"
      "them, another manifest, or as they come out now (of the files that OLD names, where no case is given). What "
      "the\n"
      "schema calls not deterministic is counted and not reported, nor is what its `agree` allows. Exit code: 0\n"
      "written, or nothing changed, 1 changed, 2 a file or an option is wrong, 3 fusediff itself failed.";
  set.example =
      "  fusediff manifest corpus --output before.jsonl\n"
      "  fusediff manifest --compare before.jsonl --target planted --against builtin:unfused\n";
  set.rest = "CASE_OR_FOLDER";
  set.shown.add_options()("help", "this text");
  add_setup_options(set.shown, 1024);
  set.shown.add_options()                                                                           //
      ("output", po::value<std::string>()->value_name("FILE"), "where the manifest goes (stdout)")  //
      ("compare", po::value<std::string>()->value_name("OLD"), "say what changed since this manifest");
  add_format_option(set.shown);
  return set;
}

// Runs cases one after the other, in a process that may die of any of them.
class Maker {
 public:
  explicit Maker(const Setup& setup) : setup_(setup), child_(options_of(setup)) {}

  // What cannot be read in a folder is named and left out; a file that is named by itself must be right.
  Result<Manifest> make(const std::vector<CorpusFile>& files) {
    Result<OpenAnswer> sides = open_in_child(child_, setup_.seconds);
    if (!sides.ok()) return sides.error();
    sides_ = *std::move(sides);
    Manifest manifest{sides_.targets, sides_.versions, sides_.paths, environment_json(sides_), {}};
    const std::set<std::string> ops(sides_.ops.begin(), sides_.ops.end());
    std::size_t left_out = 0;
    for (const CorpusFile& file : files) {
      if (is_interrupted()) return our_error("interrupted");
      const Result<CaseFile> read = read_case_file(file.path);
      if (!read.ok() && file.named) return read.error();
      if (!read.ok()) std::cerr << "note: left out: " << read.error().what << "\n";
      if (!read.ok()) continue;
      if (!ops.contains(read->c.op)) {
        ++left_out;
        continue;
      }
      if (Status added = add(file, *read, manifest); !added.ok()) return added.error();
    }
    if (left_out > 0)
      std::cerr << "note: " << left_out << " cases of operators that are not compared here are left out\n";
    if (manifest.lines.empty()) return user_error("manifest: no case here could be run; nothing was compared");
    return manifest;
  }

 private:
  static ChildOptions options_of(const Setup& setup) {
    ChildOptions options = child_options(setup);
    options.stop = &catch_interrupts();
    return options;
  }

  Status add(const CorpusFile& file, const CaseFile& read, Manifest& manifest) {
    if (!seen_.insert(case_hash_of(read.c)).second) return {};
    Result<std::vector<ManifestLine>> lines = ask(read, {true, true});
    if (!lines.ok() && file.named) return Error{lines.error().blame, file.path.string() + ": " + lines.error().what};
    if (!lines.ok()) {
      std::cerr << "note: left out: " << file.path.string() << ": " << lines.error().what << "\n";
      return {};
    }
    for (ManifestLine& line : *lines) {
      line.file = file.path.generic_string();
      manifest.lines.push_back(std::move(line));
    }
    return {};
  }

  // One that ends the process is asked once more for each side, to know which.
  Result<std::vector<ManifestLine>> ask(const CaseFile& file, const std::array<bool, 2>& wanted) {
    Request request;
    request.kind = Request::Kind::kOutputs;
    request.case_text = file.text;
    request.folder = file.folder;
    request.sides = wanted;
    const Result<Outcome> outcome = child_.request(write_request(request), answer_seconds(setup_.seconds));
    if (!outcome.ok()) return outcome.error();
    std::vector<ManifestLine> lines;
    if (outcome->kind == Outcome::Kind::kReply) {
      const Result<OutputsAnswer> answer = parse_outputs_answer(outcome->reply);
      if (!answer.ok()) return answer.error();
      if (answer->tainted) child_.end();
      for (const std::string& text : answer->lines) {
        Result<ManifestLine> line = parse_manifest_line(text);
        if (!line.ok()) return our_error(line.error().what);
        lines.push_back(*std::move(line));
      }
      return lines;
    }
    if (outcome->kind == Outcome::Kind::kStopped) return our_error("interrupted");
    if (wanted[0] && wanted[1]) {
      for (const std::array<bool, 2> one : {std::array{true, false}, std::array{false, true}}) {
        Result<std::vector<ManifestLine>> more = ask(file, one);
        if (!more.ok()) return more.error();
        lines.insert(lines.end(), more->begin(), more->end());
      }
      return lines;
    }
    lines.push_back(dead(file.c, wanted[0] ? Side::kTarget : Side::kAgainst, *outcome));
    return lines;
  }

  ManifestLine dead(const Case& c, Side side, const Outcome& outcome) const {
    ManifestLine line;
    line.case_hash = case_hash_of(c);
    line.op = c.op;
    line.dims = dims_of(c);
    line.side = side == Side::kTarget ? "target" : "against";
    line.path = sides_.paths[index_of(side)];
    line.status = outcome.kind == Outcome::Kind::kTimedOut ? "hang" : "died";
    if (outcome.kind == Outcome::Kind::kDied) line.message = describe(outcome.ended);
    return line;
  }

  const Setup& setup_;
  Child child_;
  OpenAnswer sides_;
  std::set<std::string> seen_;  // hashes of cases
};

Result<Manifest> read_manifest(const fs::path& file) {
  const Result<std::string> text = read_file(file, kMaxManifestBytes);
  if (!text.ok()) return text.error();
  Result<Manifest> manifest = parse_manifest(*text);
  if (!manifest.ok()) return user_error(file.string() + ": " + manifest.error().what);
  return manifest;
}

bool is_manifest(const std::string& path) {
  std::error_code code;
  if (!fs::is_regular_file(path, code)) return false;
  const Result<std::string> text = read_file(path, kMaxManifestBytes);
  return text.ok() && looks_like_manifest(*text);
}

// The files that a manifest names, those that are still there.
std::vector<CorpusFile> files_of(const Manifest& manifest) {
  std::set<std::string> names;
  for (const ManifestLine& line : manifest.lines) names.insert(line.file);
  std::vector<CorpusFile> files;
  std::error_code code;
  for (const std::string& name : names) {
    if (fs::is_regular_file(name, code)) files.push_back({name, false});
  }
  return files;
}

Result<Manifest> made_now(const Setup& setup, const std::vector<std::string>& rest, const Manifest* old) {
  std::vector<CorpusFile> files;
  if (rest.empty() && old != nullptr) {
    files = files_of(*old);
  } else {
    Result<std::vector<CorpusFile>> named = corpus_files(rest);
    if (!named.ok()) return named.error();
    files = *std::move(named);
  }
  if (files.empty()) return user_error("manifest: no case is there to run");
  return Maker(setup).make(files);
}

int compare_manifests(const po::variables_map& values, const Setup& setup, bool json) {
  const Result<Manifest> before = read_manifest(values["compare"].as<std::string>());
  if (!before.ok()) return fail(before.error());
  const std::vector<std::string> rest = rest_of(values);
  const bool is_file = rest.size() == 1 && is_manifest(rest.front());
  const Result<Manifest> after = is_file ? read_manifest(rest.front()) : made_now(setup, rest, &*before);
  if (is_interrupted()) return interrupted_exit_code();
  if (!after.ok()) return fail(after.error());
  const ManifestComparison comparison = compare(*before, *after);
  if (comparison.cases == 0)
    return fail(user_error("--compare: " + quote(values["compare"].as<std::string>()) +
                           " has no case in common with what it is compared with; nothing was compared"));
  if (values.count("output") != 0) {
    if (Status written = write_file(values["output"].as<std::string>(), write_manifest(*after)); !written.ok())
      return fail(written.error());
  }
  std::cout << (json ? write_comparison(comparison) + "\n" : describe(comparison)) << std::flush;
  return comparison.is_changed() ? kExitFindings : kExitClean;
}

}  // namespace

int run_manifest(const Arguments& arguments) {
  const OptionSet set = options();
  const auto parsed = parse_options(set, arguments);
  if (!parsed.ok()) return fail(parsed.error());
  if (!*parsed) return kExitClean;
  const Result<Setup> setup = setup_of(**parsed);
  if (!setup.ok()) return fail(setup.error());
  const Result<bool> json = is_json(**parsed);
  if (!json.ok()) return fail(json.error());
  if ((*parsed)->count("compare") != 0) return compare_manifests(**parsed, *setup, *json);
  const std::vector<std::string> rest = rest_of(**parsed);
  if (rest.empty()) return fail(user_error("manifest: no case is named; fusediff manifest CASE_OR_FOLDER... is right"));
  Result<Manifest> manifest = made_now(*setup, rest, nullptr);
  if (is_interrupted()) return interrupted_exit_code();
  if (!manifest.ok()) return fail(manifest.error());
  const std::string text = write_manifest(*std::move(manifest));
  if ((*parsed)->count("output") == 0) {
    std::cout << text << std::flush;
  } else if (Status written = write_file((**parsed)["output"].as<std::string>(), text); !written.ok()) {
    return fail(written.error());
  }
  return kExitClean;
}

}  // namespace fusediff
