#include "import/destination.h"

#include <algorithm>
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

Status may_write(const fs::path& file, const fs::path& made, MadeFile known) {
  if (is_free(file)) return {};
  std::error_code code;
  const std::uintmax_t size = fs::file_size(made, code);
  if (code || !has_size(file, size)) return in_the_way(file);
  return known == MadeFile::kSizeOnly || are_same(file, made) ? Status() : in_the_way(file);
}

}  // namespace fusediff
