// A bundle: the folder that holds all of one finding. Written whole or not at all; reading one never loads a library
// or runs a file that it names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "model/case.h"
#include "model/finding.h"
#include "model/recording.h"

namespace fusediff {

// How often the finding came back when its case was checked in a fresh process.
struct Replay {
  int runs = 0;
  int same = 0;  // with the same signature
};

struct Bundle {
  Case smallest;                 // case.json
  Case original;                 // original.json
  Finding finding;               // finding.json, of the smallest case
  std::optional<Replay> replay;  // in finding.json, as "replay"
  std::string environment;       // environment.json
  // Its tensors are inputs.safetensors and outputs.safetensors; the rest is in nothing but the documents. Absent where
  // the runs could not be recorded: a note of the finding says why.
  std::optional<Recording> recording;
};

// A file that is made of the rest of a bundle: the issue text, the script.
struct BundleFile {
  std::string name;
  std::string text;
};

// Writes folder/SLUG, in place of one that is there. The result is its path.
Result<std::filesystem::path> write_bundle(const std::filesystem::path& folder, const Bundle& bundle,
                                           std::span<const BundleFile> documents = {});

// Removes what a write_bundle that was killed left behind. REQUIRES: no other process writes there.
void sweep_bundles(const std::filesystem::path& folder);

// Larger tensors are never written: who records drops them and says so in a note.
inline constexpr std::uint64_t kMaxBundleTensorBytes = std::uint64_t{256} << 20;  // of each of the two files

// Of Bundle::recording: its inputs and outputs, or no tensor at all.
enum class BundleTensors { kRead, kLeft };

// path: the bundle's folder. Errors are the user's and name the file. Of the recording only the tensors come back; it
// is absent where the folder has none, as bundles of the first version.
Result<Bundle> read_bundle(const std::filesystem::path& path, BundleTensors tensors = BundleTensors::kRead);

}  // namespace fusediff
