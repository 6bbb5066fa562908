// fusediff bundle: the folder of a bundle as one file to send.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "base/archive.h"
#include "cli/options.h"
#include "engine/bundle.h"
#include "model/finding.h"
#include "model/quote.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

OptionSet options() {
  OptionSet set;
  set.usage = "fusediff bundle FOLDER... [--output FILE.tar.gz]";
  set.about =
      "Packs the folder of each bundle into a .tar.gz that fusediff replay and fusediff minimize take as it is. The\n"
      "same folder gives the same bytes. The archive's name goes to stdout. Exit code: 0 done, 2 a folder is no "
      "bundle,\n"
      "or an option is wrong.";
  set.example =
      "  fusediff fuzz --target planted --op moe_gating_topk --time 10 --out reports/example\n"
      "  fusediff bundle reports/example/findings/*\n";
  set.rest = "FOLDER";
  set.shown.add_options()("help", "this text")("output", po::value<std::string>()->value_name("FILE"),
                                               "of one folder: where the archive goes (<its signature's slug>.tar.gz "
                                               "in the current folder)");
  return set;
}

// A folder may hold notes of its owner, which are left out; what fusediff wrote or reads must go into the archive.
bool is_part_of_bundle(const std::string& name) {
  return !name.starts_with('.') &&
         (name.ends_with(".json") || name.ends_with(".safetensors") || name == "ISSUE.md" || name == "repro.py");
}

// Before anything is read: a pipe would be waited for.
Status check_parts(const fs::path& folder) {
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    const std::string name = at->path().filename().string();
    const fs::file_type type = at->symlink_status(code).type();
    if (!is_part_of_bundle(name) || type == fs::file_type::regular) continue;
    return user_error(folder.string() + ": " + quote(name) +
                      (type == fs::file_type::symlink ? " is a link" : " is no regular file") +
                      ", which is not packed, and the bundle needs it; a regular file is right");
  }
  return code ? user_error(folder.string() + ": cannot be read: " + code.message()) : Status();
}

// Regular files under plain names; what else is there is no part of a bundle and said to be left out.
std::vector<PackedFile> files_of(const fs::path& folder, const std::string& slug) {
  std::vector<PackedFile> files;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    const std::string name = at->path().filename().string();
    const bool plain = at->symlink_status(code).type() == fs::file_type::regular && name.front() != '.';
    if (plain) {
      files.push_back({slug + "/" + name, at->path()});
    } else {
      std::cerr << "note: " << folder.string() << ": " << quote(name)
                << " is left out: not a regular file of a bundle\n";
    }
  }
  return files;
}

Result<fs::path> packed(const fs::path& folder, const std::string& output) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) {
    return user_error(folder.string() + ": there is no such folder; the folder of a bundle is needed here");
  }
  if (!fs::exists(folder / "finding.json", code)) {
    return user_error(folder.string() + ": is not a bundle: finding.json is missing");
  }
  if (Status parts = check_parts(folder); !parts.ok()) return parts.error();
  const Result<Bundle> bundle = read_bundle(folder);
  if (!bundle.ok()) return bundle.error();
  const std::string slug = slug_of(bundle->finding);
  const fs::path archive = output.empty() ? fs::path(slug + ".tar.gz") : fs::path(output);
  if (Status written = write_archive(archive, files_of(folder, slug)); !written.ok()) return written.error();
  return archive;
}

}  // namespace

int run_bundle(const Arguments& arguments) {
  const OptionSet set = options();
  const auto parsed = parse_options(set, arguments);
  if (!parsed.ok()) return fail(parsed.error());
  if (!*parsed) return kExitClean;
  const std::vector<std::string> folders = rest_of(**parsed);
  if (folders.empty()) return fail(user_error("bundle: no folder is named; fusediff bundle FOLDER... is right"));
  const bool has_output = (*parsed)->count("output") != 0;
  const std::string output = has_output ? (**parsed)["output"].as<std::string>() : "";
  if (has_output && folders.size() > 1) {
    return fail(user_error("--output: names one file, and " + std::to_string(folders.size()) +
                           " folders are given; without it each gets a file of its own"));
  }
  if (has_output && !output.ends_with(".tar.gz") && !output.ends_with(".tgz")) {
    return fail(user_error("--output: " + quote(output) + " is not right; a name that ends in .tar.gz is"));
  }
  int exit_code = kExitClean;
  for (const std::string& folder : folders) {
    const Result<fs::path> archive = packed(folder, output);
    if (archive.ok()) std::cout << archive->string() << std::endl;
    exit_code = std::max(exit_code, archive.ok() ? kExitClean : fail(archive.error()));
  }
  return exit_code;
}

}  // namespace fusediff
