#include "engine/bundle.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/files.h"
#include "model/case_json.h"
#include "model/finding_json.h"
#include "model/inline_bits.h"
#include "model/safetensors.h"

namespace fusediff {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".tmp-";
constexpr std::uint64_t kMaxFindingBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxEnvironmentBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxTensorFile = kMaxBundleTensorBytes + (std::uint64_t{16} << 20);  // with its header
constexpr const char* kCaseTensors = "case.safetensors";  // of what is too large for the JSON
constexpr const char* kOriginalTensors = "original.safetensors";
constexpr const char* kInputsFile = "inputs.safetensors";
constexpr const char* kOutputsFile = "outputs.safetensors";

Result<std::string> finding_text(const Bundle& bundle) {
  try {
    Json json = Json::parse(write_finding(bundle.finding));
    if (bundle.replay) json["replay"] = {{"runs", bundle.replay->runs}, {"same", bundle.replay->same}};
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  } catch (const std::exception& thrown) {
    return our_error(std::string("a finding could not be written: ") + thrown.what());
  }
}

Status write_files(const fs::path& folder, const Bundle& bundle, const std::string& finding,
                   std::span<const BundleFile> documents) {
  const BitsBeside smallest = with_bits_beside(bundle.smallest, kCaseTensors);
  const BitsBeside original = with_bits_beside(bundle.original, kOriginalTensors);
  for (const auto& [name, tensors] :
       {std::pair{kCaseTensors, &smallest.tensors}, {kOriginalTensors, &original.tensors}}) {
    if (tensors->empty()) continue;
    if (Status written = write_file(folder / name, write_safetensors(*tensors)); !written.ok()) return written;
  }
  const std::pair<const char*, std::string> files[] = {{"case.json", write_case(smallest.c, 2) + "\n"},
                                                       {"original.json", write_case(original.c, 2) + "\n"},
                                                       {"finding.json", finding},
                                                       {"environment.json", bundle.environment}};
  for (const auto& [name, text] : files) {
    if (Status written = write_file(folder / name, text); !written.ok()) return written;
  }
  if (bundle.recording) {
    Status written = write_file(folder / kInputsFile, write_safetensors(bundle.recording->inputs));
    if (written.ok()) written = write_file(folder / kOutputsFile, write_safetensors(bundle.recording->outputs));
    if (!written.ok()) return written;
  }
  for (const BundleFile& document : documents) {
    if (Status written = write_file(folder / document.name, document.text); !written.ok()) return written;
  }
  return {};
}

// Renames `made` to `place`; what stood there is removed afterwards.
Status put(const fs::path& made, const fs::path& place) {
  if (::rename(made.c_str(), place.c_str()) == 0) return {};
  if (errno == ENOTEMPTY || errno == EEXIST) {
    if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0) return {};
    // A file system that cannot exchange two names: for a moment there is none.
    std::error_code code;
    fs::remove_all(place, code);
    if (::rename(made.c_str(), place.c_str()) == 0) return {};
  }
  return user_error(place.string() + ": cannot write: " + std::strerror(errno));
}

Result<Case> read_case(const fs::path& file) {
  const Result<std::string> text = read_file(file, kMaxCaseBytes);
  if (!text.ok()) return text.error();
  Result<Case> c = parse_case(*text, file.parent_path());
  if (!c.ok()) return user_error(file.string() + ": " + c.error().what);
  return c;
}

// Nothing where the folder has no such file.
Result<std::optional<std::vector<StoredTensor>>> read_tensors(const fs::path& file) {
  std::error_code code;
  const fs::file_status status = fs::symlink_status(file, code);
  if (status.type() == fs::file_type::not_found) return std::optional<std::vector<StoredTensor>>();
  if (status.type() != fs::file_type::regular) return user_error(file.string() + ": is not a regular file");
  const Result<std::string> text = read_file(file, kMaxTensorFile);
  if (!text.ok()) return text.error();
  Result<std::vector<StoredTensor>> tensors = parse_safetensors(*text);
  if (!tensors.ok()) return user_error(file.string() + ": " + tensors.error().what);
  return std::optional(*std::move(tensors));
}

Status read_recording(const fs::path& folder, Bundle& bundle) {
  Result<std::optional<std::vector<StoredTensor>>> inputs = read_tensors(folder / kInputsFile);
  if (!inputs.ok()) return inputs.error();
  Result<std::optional<std::vector<StoredTensor>>> outputs = read_tensors(folder / kOutputsFile);
  if (!outputs.ok()) return outputs.error();
  if (!*inputs && !*outputs) return {};
  bundle.recording.emplace();
  if (*inputs) bundle.recording->inputs = **std::move(inputs);
  if (*outputs) bundle.recording->outputs = **std::move(outputs);
  bundle.recording->experiment = bundle.smallest.experiment;
  bundle.recording->experiment.calls.clear();
  return {};
}

}  // namespace

Result<fs::path> write_bundle(const fs::path& folder, const Bundle& bundle, std::span<const BundleFile> documents) {
  const std::string slug = slug_of(bundle.finding);
  const fs::path made = folder / (std::string(kTemporary) + slug + "-" + std::to_string(::getpid()));
  const Result<std::string> finding = finding_text(bundle);
  if (!finding.ok()) return finding.error();
  std::error_code code;
  fs::remove_all(made, code);
  Status done = make_directories(made);
  if (done.ok()) done = write_files(made, bundle, *finding, documents);
  if (done.ok()) done = put(made, folder / slug);
  fs::remove_all(made, code);
  if (!done.ok()) return done.error();
  return folder / slug;
}

void sweep_bundles(const fs::path& folder) {
  std::error_code code;
  std::vector<fs::path> stale;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    if (at->path().filename().string().starts_with(kTemporary)) stale.push_back(at->path());
  }
  for (const fs::path& path : stale) fs::remove_all(path, code);
}

Result<Bundle> read_bundle(const fs::path& path, BundleTensors tensors) {
  Bundle bundle;
  Result<Case> smallest = read_case(path / "case.json");
  if (!smallest.ok()) return smallest.error();
  Result<Case> original = read_case(path / "original.json");
  if (!original.ok()) return original.error();
  const Result<std::string> text = read_file(path / "finding.json", kMaxFindingBytes);
  if (!text.ok()) return text.error();
  Result<std::string> environment = read_file(path / "environment.json", kMaxEnvironmentBytes);
  if (!environment.ok()) return environment.error();
  const auto wrong = [&](const std::string& what) {
    return user_error((path / "finding.json").string() + ": " + what);
  };
  try {
    Json json = Json::parse(*text, nullptr, false);
    if (!json.is_object()) return wrong("is cut off or no JSON; a whole finding is needed");
    if (const auto replay = json.find("replay"); replay != json.end()) {
      bundle.replay = Replay{replay->at("runs"), replay->at("same")};
      json.erase(replay);
    }
    Result<Finding> finding = parse_finding(json.dump());
    if (!finding.ok()) return wrong(finding.error().what);
    bundle.finding = *std::move(finding);
  } catch (const std::exception& thrown) {
    return wrong(thrown.what());
  }
  bundle.smallest = *std::move(smallest);
  bundle.original = *std::move(original);
  bundle.environment = *std::move(environment);
  if (tensors == BundleTensors::kLeft) return bundle;
  if (Status status = read_recording(path, bundle); !status.ok()) return status.error();
  return bundle;
}

}  // namespace fusediff
