#include "import/destination.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "base/files.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCompared = std::size_t{1} << 20;  // bytes of each file in memory

Error in_the_way(const fs::path& file) {
  return user_error(file.string() +
                    ": is there already with other content; another --out or --name is right, or removing it");
}

bool is_free(const fs::path& file) {
  std::error_code code;
  return fs::symlink_status(file, code).type() == fs::file_type::not_found;
}

// A regular file of this size.
bool has_size(const fs::path& file, std::uintmax_t size) {
  std::error_code code;
  return fs::symlink_status(file, code).type() == fs::file_type::regular && fs::file_size(file, code) == size && !code;
}

bool are_same(const fs::path& a, const fs::path& b) {
  std::ifstream first(a, std::ios::binary), second(b, std::ios::binary);
  std::vector<char> x(kCompared), y(kCompared);
  while (first && second) {
    first.read(x.data(), static_cast<std::streamsize>(x.size()));
    second.read(y.data(), static_cast<std::streamsize>(y.size()));
    if (first.gcount() != second.gcount() || !std::equal(x.begin(), x.begin() + first.gcount(), y.begin()))
      return false;
  }
  return first.eof() && second.eof();
}

fs::path temporary_of(const fs::path& place) {
  return place.parent_path() / ("." + place.filename().string() + ".tmp-" + std::to_string(::getpid()));
}

Status cannot_write(const fs::path& place) {
  return user_error(place.string() + ": cannot write: " + std::strerror(errno));
}

Status write_temporary(const NewFile& file) {
  const int descriptor = ::open(temporary_of(file.place).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) return cannot_write(file.place);
  std::string_view rest = file.text;
  Status wrote;
  while (wrote.ok() && !rest.empty()) {
    const ssize_t n = ::write(descriptor, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) wrote = cannot_write(file.place);
    if (n > 0) rest.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::close(descriptor) != 0 && wrote.ok()) wrote = cannot_write(file.place);
  return wrote;
}

Status sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::syncfs(descriptor) == 0;
  const Status status = synced ? Status() : cannot_write(folder);
  if (descriptor >= 0) ::close(descriptor);
  return status;
}

}  // namespace

std::string file_name_of(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, 100)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || (c == '.' && !name.empty());
    name += plain ? c : '_';
  }
  return name.empty() ? "captured" : name;
}

std::string FileNames::take(std::string_view wanted) {
  const std::string base = file_name_of(wanted);
  std::size_t& last = last_.try_emplace(base, 1).first->second;
  std::string name = base;
  while (!taken_.insert(name).second) name = base + "_" + std::to_string(++last);
  return name;
}

Status may_write(const fs::path& file, std::string_view content) {
  if (is_free(file)) return {};
  if (!has_size(file, content.size())) return in_the_way(file);
  const Result<std::string> there = read_file(file, content.size());
  return there.ok() && *there == content ? Status() : in_the_way(file);
}

Status write_all(const fs::path& folder, std::span<const NewFile> files) {
  Status wrote;
  for (std::size_t i = 0; i < files.size() && wrote.ok(); ++i) wrote = write_temporary(files[i]);
  if (wrote.ok()) wrote = sync_folder(folder);
  for (std::size_t i = 0; i < files.size() && wrote.ok(); ++i) {
    const NewFile& file = files[i];
    if (::rename(temporary_of(file.place).c_str(), file.place.c_str()) != 0) wrote = cannot_write(file.place);
  }
  if (wrote.ok()) return wrote;
  for (const NewFile& file : files) ::unlink(temporary_of(file.place).c_str());
  return wrote;
}

Status may_write(const fs::path& file, const fs::path& made, MadeFile known) {
  if (is_free(file)) return {};
  std::error_code code;
  const std::uintmax_t size = fs::file_size(made, code);
  if (code || !has_size(file, size)) return in_the_way(file);
  return known == MadeFile::kSizeOnly || are_same(file, made) ? Status() : in_the_way(file);
}

}  // namespace fusediff
