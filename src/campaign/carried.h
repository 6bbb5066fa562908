// A case on its way to another process: its text may name files only where both know the folder. Cases whose bits are
// small need none.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/status.h"
#include "model/case.h"

namespace fusediff {

// The case as its text is to say it: bits inline where they are small, else all in folder/file (NAME.safetensors),
// which is written, in place of one that is there. folder is there, or empty: then large bits are an error.
Result<Case> carried(Case c, const std::filesystem::path& folder, const std::string& file);

// The same in a folder that many cases share: a file a tensor, named by its content, written once.
Result<Case> carried_by_content(Case c, const std::filesystem::path& folder);

// An empty folder for a while: PARENT/.tmp-NAME-PROCESS, removed with all that is in it; sweep_bundles() would, too.
class PassingFolder {
 public:
  static Result<PassingFolder> make(const std::filesystem::path& parent, const std::string& name);
  PassingFolder(PassingFolder&& other) noexcept;
  PassingFolder& operator=(PassingFolder&&) = delete;
  ~PassingFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit PassingFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace fusediff
