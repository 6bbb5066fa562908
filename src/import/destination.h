// The folder that an import writes into: file names that are free in it, and files that must not be written over.
// Writes nothing.
#pragma once

#include <filesystem>
#include <map>
#include <set>
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

}  // namespace fusediff
