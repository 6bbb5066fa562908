// The folder that an import writes into: file names that are free in it, files that must not be written over, and many
// small files at once. Knows no case.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace fusediff {

// Names of one import, each handed out once.
class FileNames {
 public:
  // file_name_of(wanted), or that and "_2", "_3" and so on, where it is taken. Constant time for equal names.
  std::string take(std::string_view wanted);

 private:
  std::set<std::string> taken_;
  std::map<std::string, std::size_t> last_;  // number that ended a name, by what stands in front
};

// A name for a file, of letters, digits, "_", "-" and "." only, never beginning with ".".
std::string file_name_of(std::string_view text);

// An error, which names the file: something else than a regular file of this content stands there.
Status may_write(const std::filesystem::path& file, std::string_view content);
// The same; the content is that of `made`, which need not be complete yet where only its size is asked for.
enum class MadeFile { kSizeOnly, kWhole };
Status may_write(const std::filesystem::path& file, const std::filesystem::path& made, MadeFile known);

struct NewFile {
  std::filesystem::path place;
  std::string text;
};
// As write_file() of each, but synced to disk once for all of them: they are under their names or, after an error or a
// crash before that, none is. An error while they get their names leaves the first ones there. All in this folder.
Status write_all(const std::filesystem::path& folder, std::span<const NewFile> files);

}  // namespace fusediff
