// Says whether a file is a shared library that this machine can load, from its headers alone: nothing of it is mapped
// or run. A file that passes may still be refused by dlopen; one that is cut off or overwritten never gets that far.
#pragma once

#include <filesystem>

#include "base/status.h"

namespace fusediff {

// The user's error, one line that names the file: missing, unreadable, a folder, empty, not ELF, another class, byte
// order or architecture, not a shared library, or a table, segment or dynamic entry that lies outside of the file.
Status check_shared_object(const std::filesystem::path& file);

}  // namespace fusediff
