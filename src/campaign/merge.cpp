#include "campaign/merge.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/hash.h"
#include "base/spawn.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxText = std::uint64_t{1} << 30;
constexpr useconds_t kPause = 20000;
constexpr const char* kControl = "control";

// The merge as if it had been begun and nothing looked at, so that the order of the files is ours: libFuzzer's own is
// that of the folder, and which of two files of equal worth is kept hangs on it.
Status write_control(const MergePlan& plan, const fs::path& in) {
  std::vector<std::pair<std::size_t, std::string>> files;
  for (const std::string& text : plan.cases) files.emplace_back(text.size(), hash128(text).hex());
  std::sort(files.begin(), files.end());
  std::string control = std::to_string(files.size()) + "\n0\n";  // none of them is in the result already
  for (const auto& [size, name] : files) control += (in / name).string() + "\n";
  return write_file(plan.scratch / kControl, control);
}

// libFuzzer runs its inner processes through a shell and quotes nothing: everything that a user named stands in a file,
// and every path below is of plain characters.
Result<std::string> prepare(const MergePlan& plan, const fs::path& in, const fs::path& out) {
  for (const fs::path& folder : {in, out}) {
    if (Status made = make_directories(folder); !made.ok()) return made.error();
  }
  for (const std::string& text : plan.cases) {
    if (Status written = write_file(in / hash128(text).hex(), text); !written.ok()) return written.error();
  }
  if (Status written = write_control(plan, in); !written.ok()) return written.error();
  std::string arguments;
  for (const std::string& argument : plan.arguments) arguments.append(argument).append(1, '\0');
  if (Status written = write_file(plan.scratch / "arguments", arguments); !written.ok()) return written.error();
  std::error_code code;
  const fs::path program = plan.scratch / "worker";
  fs::create_symlink(plan.worker, program, code);
  if (code) return user_error(program.string() + ": cannot make the link: " + code.message());
  return program.string();
}

Result<Ended> run(const MergePlan& plan, const std::string& program, const fs::path& in, const fs::path& out) {
  const fs::path& scratch = plan.scratch;
  SpawnRequest request;
  request.program = program;
  request.arguments = {"-merge=1",
                       "-set_cover_merge=1",
                       "-merge_control_file=" + (scratch / kControl).string(),
                       "-artifact_prefix=" + scratch.string() + "/",
                       out.string(),
                       in.string(),
                       "-ignore_remaining_args=1",
                       "--merging"};
  if (!plan.tensors.empty()) request.arguments.push_back("--tensors=" + plan.tensors.string());
  request.arguments.push_back("--arguments=" + (scratch / "arguments").string());
  request.output_file = (scratch / "log").string();
  const Result<pid_t> process = spawn(request);
  if (!process.ok()) return process.error();
  for (;;) {
    if (const std::optional<Ended> ended = poll_end(*process)) {
      kill_group(*process);
      return *ended;
    }
    if (plan.stop != nullptr && plan.stop->load()) {
      kill_and_reap(*process);
      return our_error("interrupted");
    }
    ::usleep(kPause);
  }
}

// Files that were begun and never ended, by name: libFuzzer's control file has a count, a count, as many names, then
// lines STARTED and FT with a file's number.
std::set<std::string> killed_in(const fs::path& control) {
  std::set<std::string> killed;
  const Result<std::string> text = read_file(control, kMaxText);
  if (!text.ok()) return killed;
  std::istringstream lines(*text);
  std::size_t count = 0, known = 0;
  lines >> count >> known;
  std::vector<std::string> names;
  for (std::string name; names.size() < count && lines >> name;) names.push_back(fs::path(name).filename().string());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    std::size_t number = 0;
    if (!(words >> word >> number) || number >= names.size()) continue;
    if (word == "STARTED") killed.insert(names[number]);
    if (word == "FT") killed.erase(names[number]);
  }
  return killed;
}

std::string last_line_of(const fs::path& log) {
  const Result<std::string> text = read_file(log, kMaxText);
  if (!text.ok()) return "no output";
  std::istringstream lines(*text);
  std::string last = "no output";
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace

std::string name_of_case(const std::string& text) { return hash128(text).hex() + ".json"; }

Result<Merged> merge(const MergePlan& plan) {
  const fs::path in = plan.scratch / "in", out = plan.scratch / "out";
  const Result<std::string> program = prepare(plan, in, out);
  if (!program.ok()) return program.error();
  const Result<Ended> ended = run(plan, *program, in, out);
  if (!ended.ok()) return ended.error();
  const fs::path log = plan.scratch / "log";
  if (ended->signal != 0 || ended->exit_code != 0) {
    return our_error("the merging process ended with " + describe(*ended) + ": " + last_line_of(log));
  }
  std::map<std::string, std::size_t> by_name;  // the hash of its text
  for (std::size_t i = 0; i < plan.cases.size(); ++i) by_name[hash128(plan.cases[i]).hex()] = i;
  Merged merged;
  std::error_code code;
  for (fs::directory_iterator at(out, code), end; !code && at != end; at.increment(code)) {
    const Result<std::string> text = read_file(at->path(), kMaxText);
    if (!text.ok()) return text.error();
    const auto found = by_name.find(hash128(*text).hex());
    if (found == by_name.end()) return our_error("the merge wrote a case that nobody gave it");
    merged.kept.push_back(found->second);
  }
  std::sort(merged.kept.begin(), merged.kept.end());
  for (const std::string& name : killed_in(plan.scratch / kControl)) {
    const auto found = by_name.find(name);
    if (found != by_name.end()) merged.killed.push_back(found->second);
  }
  std::sort(merged.killed.begin(), merged.killed.end());
  if (merged.kept.empty() && merged.killed.empty() && !plan.cases.empty()) {
    return our_error("the merge kept nothing: " + last_line_of(log));
  }
  return merged;
}

}  // namespace fusediff
