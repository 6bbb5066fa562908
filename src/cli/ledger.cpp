// fusediff ledger: entries of the file of known signatures.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <iostream>
#include <utility>

#include "base/files.h"
#include "cli/options.h"
#include "engine/bundle.h"
#include "model/ledger.h"
#include "model/quote.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

OptionSet options() {
  OptionSet set;
  set.usage = "fusediff ledger add BUNDLE... --issue LINK --ledger FILE [options] | fusediff ledger check FILE...";
  set.about =
      "A ledger lists signatures that are known, each with the issue that tracks it: with fuzz --ledger FILE and "
      "report\n"
      "--ledger FILE these do not fail a run. add writes an entry for each bundle, in place of one of the same "
      "signature\n"
      "and scope, and makes the file where there is none; check reads files and says what is wrong with them.\n"
      "Exit code: 0 done, 2 the file, an option or a bundle is wrong.";
  set.example =
      "  fusediff fuzz --target planted_report_b2 --time 5 --out reports/b2\n"
      "  fusediff ledger add reports/b2/findings/* --issue https://example.org/issues/1 --ledger ledger.json\n"
      "  fusediff ledger check ledger.json\n"
      "  fusediff fuzz --target planted_report_b2 --time 5 --ledger ledger.json\n";
  set.rest = "add|check";
  set.shown.add_options()("help", "this text")                                                                   //
      ("ledger", po::value<std::string>()->value_name("FILE"), "the ledger that add writes to")                  //
      ("issue", po::value<std::string>()->value_name("LINK"), "to the issue, or its number")                     //
      ("reason", po::value<std::string>()->value_name("TEXT"), "why it may stay for now")                        //
      ("expires", po::value<std::string>()->value_name("DATE"), "the last day that it counts, like 2027-01-31")  //
      ("scope", po::value<std::string>()->value_name("TARGET[:VERSION]"), "the only target that it counts for");
  return set;
}

std::string text_of(const po::variables_map& values, const char* name) {
  return values.count(name) == 0 ? "" : values[name].as<std::string>();
}

// "": not given.
Result<std::string> line_of(const po::variables_map& values, const char* name) {
  std::string text = text_of(values, name);
  if (is_one_line(text)) return text;
  return user_error("--" + std::string(name) + ": " + quote(text) +
                    " has a line break or another control character; one line of text is right");
}

Status read_scope(const std::string& scope, LedgerEntry& entry) {
  const std::size_t colon = scope.find(':');
  entry.target = scope.substr(0, colon);
  if (colon != std::string::npos) entry.version = scope.substr(colon + 1);
  const auto wrong = [&](const char* what) {
    return user_error("--scope: " + quote(scope) + what + "; TARGET or TARGET:VERSION is right");
  };
  if (entry.target.empty()) return wrong(" names no target");
  if (colon != std::string::npos && entry.version.empty()) return wrong(" names no version");
  return {};
}

Result<LedgerEntry> entry_of(const po::variables_map& values) {
  LedgerEntry entry;
  for (const char* name : {"issue", "reason", "scope"}) {
    if (const Result<std::string> line = line_of(values, name); !line.ok()) return line.error();
  }
  entry.issue = text_of(values, "issue");
  if (entry.issue.empty()) return user_error("ledger add: no issue is named; --issue LINK is right");
  entry.reason = text_of(values, "reason");
  entry.expires = text_of(values, "expires");
  if (values.count("expires") != 0 && !is_date(entry.expires))
    return user_error("--expires: " + quote(entry.expires) +
                      " is no date; a day of the calendar like 2027-01-31 is right");
  if (!entry.expires.empty() && entry.expires < today())
    return user_error("--expires: " + entry.expires + " is over; today, " + today() + ", or a later day is right");
  if (values.count("scope") != 0) {
    if (Status read = read_scope(text_of(values, "scope"), entry); !read.ok()) return read.error();
  }
  return entry;
}

// Of one ledger: from reading to renaming nobody else who takes it does. It is the folder that is locked, as the file
// is another one after each change; so nothing is left beside the ledger.
class LedgerLock {
 public:
  static Result<LedgerLock> take(const fs::path& file) {
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    LedgerLock lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int locked = lock.folder_ < 0 ? -1 : ::flock(lock.folder_, LOCK_EX);
    while (lock.folder_ >= 0 && locked != 0 && errno == EINTR) locked = ::flock(lock.folder_, LOCK_EX);
    if (locked == 0) return lock;
    return user_error(file.string() + ": cannot lock the folder that it is in: " + std::strerror(errno));
  }
  LedgerLock(LedgerLock&& other) noexcept : folder_(std::exchange(other.folder_, -1)) {}
  LedgerLock& operator=(LedgerLock&&) = delete;
  ~LedgerLock() {
    if (folder_ >= 0) ::close(folder_);
  }

 private:
  explicit LedgerLock(int folder) : folder_(folder) {}

  int folder_;  // descriptor
};

// The file behind links, so that all names of it have the same lock and a link stays one.
fs::path behind_links(const fs::path& file) {
  std::error_code code;
  const fs::path real = fs::canonical(file, code);
  return code ? file : real;
}

// true: in place of one that was there.
bool put(const LedgerEntry& entry, Ledger& ledger) {
  for (LedgerEntry& known : ledger.known) {
    if (!is_same_signature(known.signature, entry.signature) || known.target != entry.target ||
        known.version != entry.version)
      continue;
    known = entry;
    return true;
  }
  ledger.known.push_back(entry);
  return false;
}

int add(const po::variables_map& values, const std::vector<std::string>& bundles) {
  if (bundles.empty())
    return fail(user_error("ledger add: no bundle is named; fusediff ledger add BUNDLE... is right"));
  if (text_of(values, "ledger").empty())
    return fail(user_error("ledger add: no ledger is named; --ledger FILE is right"));
  const Result<LedgerEntry> entry = entry_of(values);
  if (!entry.ok()) return fail(entry.error());
  std::vector<LedgerEntry> entries;
  for (const std::string& path : bundles) {
    const Result<Bundle> bundle = read_bundle(path, BundleTensors::kLeft);
    if (!bundle.ok()) return fail(bundle.error());
    entries.push_back(*entry);
    entries.back().signature = signature_of(bundle->finding);
  }
  const fs::path file = behind_links(text_of(values, "ledger"));
  const Result<LedgerLock> lock = LedgerLock::take(file);
  if (!lock.ok()) return fail(lock.error());
  Ledger ledger{file, {}};
  std::error_code code;
  if (fs::exists(file, code)) {
    Result<Ledger> read = read_ledger(file);
    if (!read.ok()) return fail(read.error());
    ledger = *std::move(read);
  }
  std::string said;
  for (const LedgerEntry& one : entries) said += (put(one, ledger) ? "updated  " : "added  ") + one.signature + "\n";
  if (const Status written = write_file(file, write_ledger(ledger)); !written.ok()) return fail(written.error());
  std::cout << said << std::flush;
  return kExitClean;
}

int check(const std::vector<std::string>& files) {
  if (files.empty()) return fail(user_error("ledger check: no file is named; fusediff ledger check FILE is right"));
  int code = kExitClean;
  for (const std::string& file : files) {
    const Result<Ledger> ledger = read_ledger(file);
    if (!ledger.ok()) {
      code = std::max(code, fail(ledger.error()));
      continue;
    }
    std::size_t expired = 0;
    for (const LedgerEntry& entry : ledger->known) expired += !entry.expires.empty() && entry.expires < today() ? 1 : 0;
    std::cout << file << ": " << ledger->known.size() << (ledger->known.size() == 1 ? " entry" : " entries");
    if (expired > 0) std::cout << ", " << expired << " of them expired";
    std::cout << std::endl;
  }
  return code;
}

}  // namespace

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  ::localtime_r(&now, &local);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &local);
  return text;
}

int run_ledger(const Arguments& arguments) {
  const OptionSet set = options();
  const auto parsed = parse_options(set, arguments);
  if (!parsed.ok()) return fail(parsed.error());
  if (!*parsed) return kExitClean;
  std::vector<std::string> rest = rest_of(**parsed);
  const std::string what = rest.empty() ? "" : rest.front();
  if (!rest.empty()) rest.erase(rest.begin());
  if (what == "add") return add(**parsed, rest);
  if (what == "check") return check(rest);
  const std::vector<std::string> legal = {"add", "check"};
  if (what.empty())
    return fail(user_error("ledger: says not what to do; fusediff ledger add or fusediff ledger check is right"));
  return fail(user_error("ledger: " + not_one_of(what, "something that it does", legal)));
}

}  // namespace fusediff
