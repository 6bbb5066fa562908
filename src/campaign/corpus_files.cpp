#include "campaign/corpus_files.h"

#include <algorithm>
#include <system_error>

#include "campaign/found.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

void add_folder(const fs::path& folder, std::vector<CorpusFile>& files) {
  std::error_code code;
  for (fs::recursive_directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    const fs::path name = at->path().filename();
    if (name.string().starts_with('.')) {
      if (at->is_directory(code)) at.disable_recursion_pending();
      continue;
    }
    if (at->is_regular_file(code) && (name.extension() == ".json" || name.extension().empty()))
      files.push_back({at->path(), false});
  }
}

}  // namespace

Result<std::vector<CorpusFile>> corpus_files(std::span<const std::string> paths) {
  std::vector<CorpusFile> files;
  std::error_code code;
  for (const std::string& name : paths) {
    const fs::path path(name);
    if (fs::is_regular_file(path, code)) {
      files.push_back({path, true});
    } else if (!fs::is_directory(path, code)) {
      return user_error(name + ": there is no such file or folder");
    } else {
      const bool run = fs::is_directory(corpus_folder(path), code) && fs::is_directory(workers_folder(path), code);
      add_folder(run ? corpus_folder(path) : path, files);
    }
  }
  std::sort(files.begin(), files.end(), [](const CorpusFile& a, const CorpusFile& b) { return a.path < b.path; });
  const auto same = [](const CorpusFile& a, const CorpusFile& b) { return a.path == b.path; };
  files.erase(std::unique(files.begin(), files.end(), same), files.end());
  return files;
}

}  // namespace fusediff
