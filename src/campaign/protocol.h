// The lines between this program and its child: requests and answers as text. No process and no target here.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/case.h"
#include "model/finding.h"
#include "model/recording.h"

namespace fusediff {

// The exit code of a process of ours that ran out of memory; libFuzzer uses the same.
inline constexpr int kMemoryExit = 71;

struct Request {
  enum class Kind { kCheck, kMinimize, kList, kOpen, kRecord, kOutputs, kLegal } kind = Kind::kCheck;
  std::string case_text;         // a case's JSON
  std::filesystem::path folder;  // where its files are looked for; "": they are refused
  double seconds = 30;           // of kMinimize, and its tries and needed
  int tries = 1;
  int needed = 1;
  bool progress = false;  // kMinimize: Progress lines come before the answer
  // kMinimize: each candidate is checked in a process of its own, this program with these arguments; empty: in this
  // one.
  std::vector<std::string> apart;
  double apart_seconds = 0;  // the cap of one run there
  // A folder that is there. kRecord: for inputs.safetensors and outputs.safetensors. kMinimize: for the files that the
  // cases of progress and answer name, each of its own name, where their bits are large.
  std::filesystem::path into;
  bool run = true;                           // kRecord: false: inputs only
  std::array<bool, 2> sides = {true, true};  // kOutputs: [Side] that are run
};
std::string write_request(const Request& request);
Result<Request> parse_request(std::string_view line);

struct CheckAnswer {
  Verdict verdict;
  std::uint64_t runs = 0;
  std::uint64_t target_nanoseconds = 0;
  bool tainted = false;  // use a fresh process for the next request
};
struct MinimizeAnswer {
  Case smallest;
  Finding finding;
  int checks = 0;
  bool finished = false;
  std::vector<std::string> notes;
  bool tainted = false;
};
struct RecordAnswer {
  Recording recording;  // without tensors: they are in the files
  std::vector<std::string> notes;
  bool tainted = false;
};
// The target alone, in words; no other side is needed.
struct ListAnswer {
  struct Entry {
    std::string name;
    std::vector<std::string> paths;
    std::vector<std::string> dims;    // "T 0..4096"
    std::vector<std::string> dtypes;  // "x f32 f16 bf16", of the inputs that have a choice
  };
  std::string target;
  std::string version;
  std::string file;
  std::vector<Entry> operators;
};
// Both sides, as they will be compared. [Side]
struct OpenAnswer {
  std::array<std::string, 2> targets;
  std::array<std::string, 2> versions;
  std::array<std::string, 2> paths;
  std::array<std::string, 2> files;
  std::vector<std::string> ops;                            // that are compared
  std::vector<std::string> left_out;                       // that the against side does not offer
  std::array<std::string, 2> options = {};                 // for open()
  std::array<bool, 2> isolated = {};                       // in a process of its own
  std::array<std::vector<std::string>, 2> variables = {};  // "NAME=VALUE", that the user gave that process
};

// What each wanted side gave: lines of campaign/manifest.h.
struct OutputsAnswer {
  std::vector<std::string> lines;
  bool tainted = false;
};
// Of kLegal: nothing but that it is; else the answer is the error.
struct LegalAnswer {};

// What is under way, sent ahead of an answer.
struct Progress {
  std::string step;
  int checks = 0;
  std::string case_text = {};  // the smallest case so far, when there is another one
};
std::string write_progress(const Progress& progress);
// Nothing: the line is an answer, or no line of ours.
std::optional<Progress> parse_progress(std::string_view line);

std::string write_answer(const Error& error);
std::string write_answer(const CheckAnswer& answer);
std::string write_answer(const MinimizeAnswer& answer);
std::string write_answer(const RecordAnswer& answer);
std::string write_answer(const ListAnswer& answer);
std::string write_answer(const OpenAnswer& answer);
std::string write_answer(const OutputsAnswer& answer);
std::string write_answer(const LegalAnswer& answer);

// An answer that is an error is that error; one that is not understood is ours.
Result<CheckAnswer> parse_check_answer(std::string_view line);
// folder: of the files that the case still names, which are too large to stand in it.
Result<MinimizeAnswer> parse_minimize_answer(std::string_view line, const std::filesystem::path& folder = {});
Result<RecordAnswer> parse_record_answer(std::string_view line);
Result<ListAnswer> parse_list_answer(std::string_view line);
Result<OpenAnswer> parse_open_answer(std::string_view line);
Result<OutputsAnswer> parse_outputs_answer(std::string_view line);
Result<LegalAnswer> parse_legal_answer(std::string_view line);

}  // namespace fusediff
