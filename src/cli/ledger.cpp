// fusediff ledger: entries of the file of known signatures.
#include <ctime>
#include <iostream>

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

Result<LedgerEntry> entry_of(const po::variables_map& values) {
  LedgerEntry entry;
  entry.issue = text_of(values, "issue");
  if (entry.issue.empty()) return user_error("ledger add: no issue is named; --issue LINK is right");
  entry.reason = text_of(values, "reason");
  entry.expires = text_of(values, "expires");
  if (!entry.expires.empty() && !is_date(entry.expires))
    return user_error("--expires: " + quote(entry.expires) +
                      " is no date; a day of the calendar like 2027-01-31 is right");
  const std::string scope = text_of(values, "scope");
  const std::size_t colon = scope.find(':');
  entry.target = scope.substr(0, colon);
  if (colon != std::string::npos) entry.version = scope.substr(colon + 1);
  if (entry.target.empty() && !entry.version.empty())
    return user_error("--scope: " + quote(scope) + " names no target; TARGET or TARGET:VERSION is right");
  return entry;
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
  const fs::path file = text_of(values, "ledger");
  if (file.empty()) return fail(user_error("ledger add: no ledger is named; --ledger FILE is right"));
  const Result<LedgerEntry> entry = entry_of(values);
  if (!entry.ok()) return fail(entry.error());
  Ledger ledger{file, {}};
  std::error_code code;
  if (fs::exists(file, code)) {
    Result<Ledger> read = read_ledger(file);
    if (!read.ok()) return fail(read.error());
    ledger = *std::move(read);
  }
  std::string said;
  for (const std::string& path : bundles) {
    const Result<Bundle> bundle = read_bundle(path);
    if (!bundle.ok()) return fail(bundle.error());
    LedgerEntry of_bundle = *entry;
    of_bundle.signature = signature_of(bundle->finding);
    said += (put(of_bundle, ledger) ? "updated  " : "added  ") + of_bundle.signature + "\n";
  }
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
