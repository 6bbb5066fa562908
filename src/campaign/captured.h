// Corpora whose cases name files beside them, made readable for workers: the tensors go to one folder of the campaign,
// under names made of their content, and the cases are written anew with these names. The corpora are only read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace fusediff {

// The one folder that a campaign's cases may name files of, below its --out: tensors/.
std::filesystem::path tensors_folder(const std::filesystem::path& out);

// Where the files are that cases in this folder name: the folder itself, or tensors/ beside it where it is a run's
// corpus/.
std::filesystem::path tensors_of_cases_in(const std::filesystem::path& folder);

// The folders that workers are to read in place of the corpora: a corpus without safetensors files is itself, another
// one, a run's corpus/ with its tensors/ included, becomes a folder below out/seeds, made anew. Tensors are hard links
// where the file system allows it, else copies; what is no regular file is passed over. Errors: the disk.
Result<std::vector<std::filesystem::path>> stage_corpora(const std::filesystem::path& out,
                                                         const std::vector<std::filesystem::path>& corpora);

}  // namespace fusediff
