// fusediff merge: the corpora of several runs as one, and what in a corpus is no case any more.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "campaign/ask.h"
#include "campaign/carried.h"
#include "campaign/corpus_files.h"
#include "campaign/merge.h"
#include "cli/case_check.h"
#include "cli/interrupts.h"
#include "cli/opened_bundle.h"
#include "cli/options.h"
#include "model/case_json.h"
#include "model/quote.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

OptionSet options() {
  OptionSet set;
  set.usage =
      "fusediff merge --out DIR CORPUS_OR_RUN_FOLDER... [options]\n"
      "       fusediff merge --check CORPUS_OR_RUN_FOLDER... [options]";
  set.about =
      "Writes the fewest cases that keep every feature of all that are named to a new folder, each under the hash of\n"
      "its text. What is no case, or not legal for the target, is named on stderr and left out; so is a case that "
      "ends\n"
      "the process: its bundle is where it belongs. With --check nothing is written or run: such files are named, and\n"
      "the exit code is 2 if there are any. Exit code: 0 done, 2 a folder or an option is wrong, 3 fusediff itself\n"
      "failed, 130 interrupted.";
  set.example =
      "  fusediff fuzz --target builtin --op softmax --runs 500 --out reports/one\n"
      "  fusediff fuzz --target builtin --op softmax --runs 500 --seed 2 --out reports/two\n"
      "  fusediff merge --out reports/merged reports/one reports/two\n"
      "  fusediff merge --check reports/merged\n";
  set.rest = "CORPUS_OR_RUN_FOLDER";
  set.shown.add_options()("help", "this text");
  add_setup_options(set.shown, 64);
  set.shown.add_options()                                                     //
      ("out", po::value<std::string>()->value_name("DIR"), "the new folder")  //
      ("check", po::bool_switch(), "only name the files that do not decode or are not legal for the target");
  return set;
}

struct Read {
  std::map<std::string, std::string> cases;  // a case's text, on one line; the file that it came from
  std::size_t files = 0;
  std::size_t refused = 0;
};

class Reader {
 public:
  // tensors: a folder that takes what is too large for a case's JSON.
  Reader(const Setup& setup, fs::path tensors)
      : setup_(setup), tensors_(std::move(tensors)), child_(options_of(setup)) {}

  Result<Read> read(const std::vector<CorpusFile>& files) {
    const Result<OpenAnswer> sides = open_in_child(child_, setup_.seconds);
    if (!sides.ok()) return sides.error();
    Read read;
    for (const CorpusFile& file : files) {
      if (is_interrupted()) return our_error("interrupted");
      ++read.files;
      const Result<std::string> text = legal_text(file.path, *sides);
      if (text.ok()) {
        read.cases.emplace(*text, file.path.string());
      } else if (text.error().blame == Blame::kOurs) {
        return text.error();
      } else {
        ++read.refused;
        std::cerr << text.error().what << "\n";
      }
    }
    return read;
  }

 private:
  static ChildOptions options_of(const Setup& setup) {
    ChildOptions options = child_options(setup);
    options.stop = &catch_interrupts();
    return options;
  }

  Result<std::string> legal_text(const fs::path& path, const OpenAnswer& sides) {
    const Result<CaseFile> file = read_case_file(path);
    if (!file.ok()) return file.error();
    const auto refused = [&](const std::string& what) { return user_error(path.string() + ": " + what); };
    if (std::find(sides.ops.begin(), sides.ops.end(), file->c.op) == sides.ops.end()) {
      return refused(quote(file->c.op) + " is not an operator that is compared here");
    }
    Request request;
    request.kind = Request::Kind::kLegal;
    request.case_text = file->text;
    request.folder = file->folder;
    const Result<Outcome> outcome = child_.request(write_request(request), answer_seconds(setup_.seconds));
    if (!outcome.ok()) return outcome.error();
    if (outcome->kind == Outcome::Kind::kStopped) return our_error("interrupted");
    if (outcome->kind != Outcome::Kind::kReply) return refused("ends the process that reads it");
    const Result<LegalAnswer> legal = parse_legal_answer(outcome->reply);
    if (!legal.ok() && legal.error().blame == Blame::kOurs) return legal.error();
    if (!legal.ok()) return refused(legal.error().what);
    const Result<Case> c = carried_by_content(file->c, tensors_);
    if (!c.ok()) return our_error(c.error().what);
    std::string text = write_case(*c);
    if (text.size() > kMaxCaseBytes) return refused("is too large, written anew on one line");
    return text;
  }

  const Setup& setup_;
  fs::path tensors_;
  Child child_;
};

// The files that a case names, as its text does.
std::set<std::string> files_named_in(const std::string& text) {
  std::set<std::string> files;
  constexpr std::string_view kEnd = ".safetensors#";
  for (std::size_t at = text.find(kEnd); at != std::string::npos; at = text.find(kEnd, at + 1)) {
    const std::size_t begin = text.rfind('"', at) + 1;
    files.insert(text.substr(begin, at + kEnd.size() - 1 - begin));
  }
  return files;
}

// Whole or not at all.
Status write_corpus(const fs::path& out, const std::vector<std::string>& texts, const fs::path& tensors) {
  const fs::path made = out.string() + ".tmp" + std::to_string(::getpid());
  Status done = make_directories(made);
  std::set<std::string> files;
  for (const std::string& text : texts) {
    if (done.ok()) done = write_file(made / name_of_case(text), text);
    files.merge(files_named_in(text));
  }
  std::error_code code;
  for (const std::string& file : files) {
    if (!done.ok()) break;
    fs::copy_file(tensors / file, made / file, code);
    if (code) done = user_error((out / file).string() + ": cannot write: " + code.message());
  }
  if (done.ok()) {
    fs::remove(out, code);  // an empty folder at most
    fs::rename(made, out, code);
    if (code) done = user_error(out.string() + ": cannot write: " + code.message());
  }
  if (!done.ok()) fs::remove_all(made, code);
  return done;
}

bool is_plain(const std::string& path) {
  return path.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/") ==
         std::string::npos;
}

int merge_into(const fs::path& out, const Setup& setup, const Read& read, const fs::path& scratch,
               const fs::path& tensors) {
  const Result<std::string> worker = worker_program();
  if (!worker.ok()) return fail(worker.error());
  if (!is_plain(scratch.string())) {
    return fail(user_error("TMPDIR: " + quote(scratch.parent_path().string()) +
                           " is not right; a folder of letters, digits and ._-/ is"));
  }
  MergePlan plan{*worker, arguments_of(setup), scratch, tensors, {}, &catch_interrupts()};
  std::vector<std::string> files;
  for (const auto& [text, file] : read.cases) {
    plan.cases.push_back(text);
    files.push_back(file);
  }
  const Result<Merged> merged = merge(plan);
  if (is_interrupted()) return interrupted_exit_code();
  if (!merged.ok()) return fail(merged.error());
  for (const std::size_t i : merged->killed) std::cerr << files[i] << ": ends the process; left out\n";
  std::vector<std::string> kept;
  for (const std::size_t i : merged->kept) kept.push_back(plan.cases[i]);
  if (const Status written = write_corpus(out, kept, tensors); !written.ok()) return fail(written.error());
  std::cout << out.string() << ": " << kept.size() << " cases of " << read.files << " files (" << read.cases.size()
            << " different, " << read.refused << " refused, " << merged->killed.size() << " end the process)"
            << std::endl;
  return kExitClean;
}

}  // namespace

int run_merge(const Arguments& arguments) {
  const OptionSet set = options();
  const auto parsed = parse_options(set, arguments);
  if (!parsed.ok()) return fail(parsed.error());
  if (!*parsed) return kExitClean;
  const Result<Setup> setup = setup_of(**parsed);
  if (!setup.ok()) return fail(setup.error());
  const bool check = (**parsed)["check"].as<bool>();
  const std::string out = (*parsed)->count("out") != 0 ? (**parsed)["out"].as<std::string>() : "";
  std::error_code code;
  if (check == !out.empty()) return fail(user_error("merge: either --out DIR or --check is right"));
  if (!out.empty() && fs::exists(out, code) && !(fs::is_directory(out, code) && fs::is_empty(out, code))) {
    return fail(user_error("--out: " + quote(out) + " is there and not empty; a new folder is right"));
  }
  const Result<std::vector<CorpusFile>> files = corpus_files(rest_of(**parsed));
  if (!files.ok()) return fail(files.error());
  if (files->empty()) return fail(user_error("merge: no case is named; fusediff merge --out DIR FOLDER... is right"));
  const Result<ScratchFolder> scratch = ScratchFolder::make();
  if (!scratch.ok()) return fail(scratch.error());
  const fs::path tensors = scratch->path() / "tensors";
  if (Status made = make_directories(tensors); !made.ok()) return fail(made.error());
  const Result<Read> read = Reader(*setup, tensors).read(*files);
  if (is_interrupted()) return interrupted_exit_code();
  if (!read.ok()) return fail(read.error());
  if (check) {
    std::cout << read->files - read->refused << " of " << read->files << " files are cases that are legal here"
              << std::endl;
    return read->refused == 0 ? kExitClean : kExitUser;
  }
  if (read->cases.empty()) return fail(user_error("merge: none of the files is a case that is legal here"));
  return merge_into(out, *setup, *read, scratch->path(), tensors);
}

}  // namespace fusediff
