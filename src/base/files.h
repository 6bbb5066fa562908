// Whole files: read with a cap, write so that a reader sees the old content or the new, never a part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/status.h"

namespace fusediff {

// The file's bytes. A missing, unreadable or larger file, a folder, a pipe or a device is the user's error and names
// the path.
Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t max_bytes);

// Writes beside the path and renames over it; synced to disk before the rename. A full disk is the user's error; the
// old file stays and nothing else is left behind. A link keeps pointing where it does; a device is written into.
Status write_file(const std::filesystem::path& path, std::string_view bytes);

// Appends one line (the newline is added) in one write call, so that lines of several processes never mix.
Status append_line(const std::filesystem::path& path, std::string_view line);

Status make_directories(const std::filesystem::path& path);

}  // namespace fusediff
