#include "cli/written_case.h"

#include <array>
#include <string>
#include <system_error>

#include "base/files.h"
#include "campaign/carried.h"
#include "model/case_json.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

// As a case may name it: a "#" would end it, and a hidden file is refused.
std::string plain_name(const fs::path& file) {
  std::string name = file.filename().string();
  for (char& c : name) {
    if (c == '#' || c == '\\') c = '_';
  }
  if (name.starts_with('.')) name.front() = '_';
  return name;
}

bool names(const std::string& text, const std::string& file) {
  return text.find("\"" + file + "#") != std::string::npos;
}

}  // namespace

Status write_case_alone(const fs::path& file, const Case& c) {
  const std::string base = plain_name(file);
  const std::array files = {base + ".safetensors", base + ".2.safetensors"};
  const Result<std::string> before = read_file(file, kMaxCaseBytes);
  const bool second = before.ok() && names(*before, files[0]);
  const Result<Case> beside = carried(c, fs::absolute(file).parent_path(), files[second ? 1 : 0]);
  if (!beside.ok()) return beside.error();
  const std::string text = write_case(*beside, 2) + "\n";
  if (Status written = write_file(file, text); !written.ok()) return written;
  for (const std::string& name : files) {
    std::error_code code;
    if (before.ok() && names(*before, name) && !names(text, name))
      fs::remove(fs::absolute(file).parent_path() / name, code);
  }
  return {};
}

}  // namespace fusediff
