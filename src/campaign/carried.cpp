#include "campaign/carried.h"

#include <unistd.h>

#include <span>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/hash.h"
#include "model/inline_bits.h"

namespace fusediff {

namespace fs = std::filesystem;

Result<Case> carried(Case c, const fs::path& folder, const std::string& file) {
  BitsBeside beside = with_bits_beside(std::move(c), file);
  if (beside.tensors.empty()) return std::move(beside.c);
  if (folder.empty()) {
    return our_error("bits of " + std::to_string(bytes_of_bits(beside.c)) +
                     " bytes are too many for a case without files");
  }
  if (Status written = write_file(folder / file, write_safetensors(beside.tensors)); !written.ok())
    return written.error();
  return std::move(beside.c);
}

Result<Case> carried_by_content(Case c, const fs::path& folder) {
  Status status;
  BitsBeside beside = with_bits_beside(std::move(c), [&](const StoredTensor& tensor) {
    const std::string text = write_safetensors(std::span(&tensor, 1));
    std::string name = hash128(text).hex() + ".safetensors";
    std::error_code code;
    if (status.ok() && !fs::exists(folder / name, code)) status = write_file(folder / name, text);
    return name;
  });
  if (!status.ok()) return status.error();
  return std::move(beside.c);
}

Result<PassingFolder> PassingFolder::make(const fs::path& parent, const std::string& name) {
  const fs::path path = parent / (".tmp-" + name + "-" + std::to_string(::getpid()));
  std::error_code code;
  fs::remove_all(path, code);
  if (Status made = make_directories(path); !made.ok()) return made.error();
  return PassingFolder(path);
}

PassingFolder::PassingFolder(PassingFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
PassingFolder::~PassingFolder() {
  std::error_code code;
  if (!path_.empty()) fs::remove_all(path_, code);
}

}  // namespace fusediff
