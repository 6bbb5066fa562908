// A gzipped tar archive of a few files: written so that equal files give equal bytes, read as something that a stranger
// made. Knows no other format, and nothing of what the files mean.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/status.h"

namespace fusediff {

struct ArchiveLimits {
  std::uint64_t total_bytes = std::uint64_t{8} << 30;  // of all files
  std::size_t entries = 256;
  std::size_t name_bytes = 240;  // of a whole name, folders included
  // Unpacked bytes to packed ones, once more than ratio_from bytes came out; deflate itself reaches 1032.
  std::uint64_t ratio = 200;
  std::uint64_t ratio_from = std::uint64_t{1} << 30;
};

struct PackedFile {
  std::string name;            // in the archive: parts of printable ASCII, between slashes
  std::filesystem::path file;  // a regular file, no link
};

// Writes beside the path and renames over it. Sorted by name, owner 0, mode 0644, time 0, no name or time in gzip's
// header: the same files give the same bytes. What extract_archive() would refuse with these limits is refused here. A
// failed call leaves the old file and nothing else.
Status write_archive(const std::filesystem::path& archive, std::span<const PackedFile> files,
                     const ArchiveLimits& limits = {});

// Puts the files below `folder`, which is there, empty, and no other process's. Refused, with one line that names the
// entry: anything but regular files and folders, absolute names, "..", names that are not printable ASCII or hold a
// backslash, a name twice, more than the limits allow (looked at before anything is made), bytes that are cut off or
// fail gzip's checksum, and what is no gzipped tar. Nothing is ever written outside `folder`; what was written before
// the refusal stays there.
Status extract_archive(const std::filesystem::path& archive, const std::filesystem::path& folder,
                       const ArchiveLimits& limits = {});

}  // namespace fusediff
