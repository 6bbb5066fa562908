// A bundle as somebody names it, its folder or an archive of it, as a folder. Reads no file of it and runs nothing.
#pragma once

#include <filesystem>
#include <string>

#include "base/status.h"

namespace fusediff {

// A private folder, removed with all that is in it when this goes.
class ScratchFolder {
 public:
  static Result<ScratchFolder> make();
  ScratchFolder() = default;  // none
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&& other) noexcept;
  ~ScratchFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// What is unpacked lives as long as this.
struct OpenedBundle {
  std::filesystem::path folder;
  ScratchFolder scratch;
};

// An archive (.tar.gz or .tgz) is unpacked, a folder taken as it is. Errors are the user's and name the path: what is
// neither, an archive that is refused (base/archive.h), and what has no finding.json.
Result<OpenedBundle> open_bundle(const std::filesystem::path& path);
// By its name: a folder or an archive, not the file of a case.
bool may_be_bundle(const std::filesystem::path& path);

}  // namespace fusediff
