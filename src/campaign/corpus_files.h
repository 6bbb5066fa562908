// The files of a corpus, as somebody names them: case files, folders of them, and the folder of a run. Reads names
// only.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace fusediff {

struct CorpusFile {
  std::filesystem::path path;
  bool named = false;  // by itself, not by its folder
};

// Sorted, each once. Of a folder every regular file below it whose name ends in .json or has no ending (as libFuzzer
// names them), hidden ones left out; of a run's folder (it holds corpus/ and workers/) those below corpus/. A path that
// is not there is the user's error.
Result<std::vector<CorpusFile>> corpus_files(std::span<const std::string> paths);

}  // namespace fusediff
