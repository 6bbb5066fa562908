#include "campaign/captured.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "base/files.h"
#include "base/hash.h"
#include "model/case_json.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kEnding = ".safetensors";
constexpr std::string_view kCorpus = "corpus";  // of a run

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(folder, options, code), end; !code && at != end; at.increment(code)) {
    std::error_code ignored;
    if (at->symlink_status(ignored).type() == fs::file_type::regular) files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The hash of a file of any size, which is mapped and not read into memory.
Result<std::string> hash_of(const fs::path& file) {
  const auto wrong = [&file] { return user_error(file.string() + ": cannot be read"); };
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return wrong();
  struct stat about = {};
  const bool known = ::fstat(descriptor, &about) == 0;
  const auto size = static_cast<std::size_t>(about.st_size);
  void* const bytes = known && size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0) : MAP_FAILED;
  ::close(descriptor);
  if (bytes == MAP_FAILED) return known && size == 0 ? Result<std::string>(hash128("").hex()) : wrong();
  std::string hex = hash128(std::string_view(static_cast<const char*>(bytes), size)).hex();
  ::munmap(bytes, size);
  return hex;
}

std::set<fs::path> folders_of(const std::vector<fs::path>& files) {
  std::set<fs::path> folders;
  for (const fs::path& file : files) folders.insert(file.parent_path());
  return folders;
}

bool names_tensors(const std::vector<fs::path>& files) {
  const std::set<fs::path> folders = folders_of(files);
  return std::any_of(files.begin(), files.end(), [](const fs::path& file) { return file.extension() == kEnding; }) ||
         std::any_of(folders.begin(), folders.end(),
                     [](const fs::path& folder) { return tensors_of_cases_in(folder) != folder; });
}

class Stage {
 public:
  Stage(fs::path tensors, fs::path seeds) : tensors_(std::move(tensors)), seeds_(std::move(seeds)) {}

  Status take(const fs::path& corpus, const std::vector<fs::path>& files) {
    for (const fs::path& file : files) {
      if (file.extension() == kEnding) {
        if (Status linked = take_tensors(file); !linked.ok()) return linked;
      }
    }
    for (const fs::path& folder : folders_of(files)) {
      const fs::path tensors = tensors_of_cases_in(folder);
      if (tensors == folder) continue;
      for (const fs::path& file : files_below(tensors)) {
        if (file.extension() != kEnding || names_.contains(folder / file.filename())) continue;
        if (Status linked = take_tensors(file); !linked.ok()) return linked;
        names_[folder / file.filename()] = names_[file];
      }
    }
    for (const fs::path& file : files) {
      if (file.extension() == kEnding) continue;
      const Result<std::string> text = read_file(file, kMaxCaseBytes);
      if (!text.ok()) continue;  // too large to be a case
      const fs::path place = seeds_ / file.lexically_relative(corpus);
      if (Status made = make_directories(place.parent_path()); !made.ok()) return made;
      if (Status wrote = write_file(place, renamed(*text, file.parent_path())); !wrote.ok()) return wrote;
    }
    return {};
  }

 private:
  Status take_tensors(const fs::path& file) {
    const Result<std::string> hash = hash_of(file);
    if (!hash.ok()) return hash.error();
    const std::string name = *hash + std::string(kEnding);
    names_[file] = name;
    std::error_code code;
    if (fs::exists(tensors_ / name, code)) return {};
    // Under another name first: what has its name is whole.
    const fs::path made = tensors_ / (".tmp-" + name);
    fs::remove(made, code);
    fs::create_hard_link(file, made, code);
    if (code) fs::copy_file(file, made, code);
    if (!code) fs::rename(made, tensors_ / name, code);
    if (code) return user_error((tensors_ / name).string() + ": cannot write: " + code.message());
    return {};
  }

  // The case with the campaign's names of the files beside it.
  std::string renamed(const std::string& text, const fs::path& folder) const {
    if (text.find(kEnding) == std::string::npos) return text;
    Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) return text;
    rename_in(json, folder, 0);
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  void rename_in(Json& json, const fs::path& folder, int depth) const {
    if (depth > kMaxCaseNesting || !json.is_structured()) return;
    for (auto& [key, item] : json.items()) {
      rename_in(item, folder, depth + 1);
      if (!json.is_object() || key != "bits" || !item.is_string()) continue;
      const std::string& bits = item.get_ref<const std::string&>();
      const std::size_t hash = bits.find('#');
      if (hash == std::string::npos) continue;
      const auto known = names_.find(folder / bits.substr(0, hash));
      if (known != names_.end()) item = known->second + bits.substr(hash);
    }
  }

  fs::path tensors_, seeds_;
  std::map<fs::path, std::string> names_;
};

}  // namespace

fs::path tensors_folder(const fs::path& out) { return out / "tensors"; }

fs::path tensors_of_cases_in(const fs::path& folder) {
  const fs::path whole = (folder / "").lexically_normal().parent_path();  // without a slash at its end
  const fs::path tensors = tensors_folder(whole.parent_path());
  std::error_code code;
  return whole.filename() == kCorpus && fs::is_directory(tensors, code) ? tensors : folder;
}

Result<std::vector<fs::path>> stage_corpora(const fs::path& out, const std::vector<fs::path>& corpora) {
  std::vector<fs::path> staged;
  std::error_code code;
  fs::remove_all(out / "seeds", code);
  for (const fs::path& corpus : corpora) {
    const std::vector<fs::path> files = files_below(corpus);
    if (!names_tensors(files)) {
      staged.push_back(corpus);
      continue;
    }
    const fs::path seeds = out / "seeds" / std::to_string(staged.size());
    for (const fs::path& folder : {tensors_folder(out), seeds}) {
      if (Status made = make_directories(folder); !made.ok()) return made.error();
    }
    if (Status taken = Stage(tensors_folder(out), seeds).take(corpus, files); !taken.ok()) return taken.error();
    staged.push_back(seeds);
  }
  return staged;
}

}  // namespace fusediff
