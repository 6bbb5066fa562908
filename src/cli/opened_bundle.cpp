#include "cli/opened_bundle.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/archive.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

bool is_archive_name(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".tar.gz") || name.ends_with(".tgz");
}

// The bundle's own folder: the one that is named, or the only one in it, as archives have it.
fs::path root_of(const fs::path& unpacked) {
  std::error_code code;
  if (fs::exists(unpacked / "finding.json", code)) return unpacked;
  fs::path only;
  for (fs::directory_iterator at(unpacked, code), end; !code && at != end; at.increment(code)) {
    if (!only.empty() || !at->is_directory(code)) return unpacked;
    only = at->path();
  }
  return only.empty() ? unpacked : only;
}

}  // namespace

Result<ScratchFolder> ScratchFolder::make() {
  std::error_code code;
  fs::path base = fs::temp_directory_path(code);
  if (code) base = "/tmp";
  std::string name = (base / "fusediff-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return user_error(base.string() + ": cannot make a folder there: " + std::strerror(errno));
  }
  ScratchFolder made;
  made.path_ = name;
  return made;
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
ScratchFolder& ScratchFolder::operator=(ScratchFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}
ScratchFolder::~ScratchFolder() {
  std::error_code code;
  if (!path_.empty()) fs::remove_all(path_, code);
}

bool may_be_bundle(const fs::path& path) {
  std::error_code code;
  return fs::is_directory(path, code) || is_archive_name(path);
}

Result<OpenedBundle> open_bundle(const fs::path& path) {
  std::error_code code;
  OpenedBundle opened{path, {}};
  if (!fs::is_directory(path, code)) {
    if (!fs::exists(path, code)) {
      return user_error(path.string() + ": there is no such folder; the folder of a bundle is needed here");
    }
    if (!is_archive_name(path)) {
      return user_error(path.string() + ": is a file; the folder of a bundle, or its .tar.gz, is needed here");
    }
    Result<ScratchFolder> scratch = ScratchFolder::make();
    if (!scratch.ok()) return scratch.error();
    if (Status unpacked = extract_archive(path, scratch->path()); !unpacked.ok()) return unpacked.error();
    opened.folder = root_of(scratch->path());
    opened.scratch = *std::move(scratch);
  }
  if (!fs::exists(opened.folder / "finding.json", code)) {
    return user_error(path.string() + ": is not a bundle: finding.json is missing");
  }
  return opened;
}

}  // namespace fusediff
