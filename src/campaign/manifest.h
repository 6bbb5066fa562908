// A manifest: what a corpus gives on two paths, as hashes, so that another build, device or day can be held against it.
// Runs nothing: what was run comes from engine/run_sides.h.
//
// The file is JSON lines: a header with the version, the targets and the environment, then one line a case, side and
// output, sorted by operator, case, side and the operator's order of outputs; a side that gave none has one line
// without output. Small outputs stand in it whole, larger ones as hashes of up to 64 blocks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/run_sides.h"
#include "model/case.h"
#include "model/dtype.h"

namespace fusediff {

inline constexpr int kManifestVersion = 1;
inline constexpr std::size_t kMostInline = 2048;  // bytes of an output that stands there whole
inline constexpr std::int64_t kMostBlocks = 64;

struct ManifestOutput {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::string hash;          // XXH3-128 of the bytes
  std::uint64_t agreed = 0;  // ULP that `agree` allows
  bool nan_bits = false;
  std::optional<std::vector<std::byte>> bits;  // whole, or
  std::int64_t block_elements = 0;             // so many elements a block (the last may have fewer), and
  std::string blocks;                          // 16 hex digits each: the low half of XXH3-128
};

struct ManifestLine {
  std::string case_hash;  // XXH3-128 of the case's text, without experiment, on one line
  std::string file;
  std::string op;
  std::string dims;  // "R=4 C=8"
  std::string side;  // "target" or "against"
  std::string path;
  std::string status;
  std::string message;
  std::string inputs;  // hash of what the side received; "": it received nothing
  bool deterministic = true;
  std::optional<ManifestOutput> output;
};

struct Manifest {
  std::array<std::string, 2> targets, versions, paths;  // [Side]
  std::string environment;                              // JSON, as in a bundle
  std::vector<ManifestLine> lines;
};

// What is the same for two manifests of one case: the case without its experiment.
Case own_call(const Case& c);
std::string case_hash_of(const Case& c);
std::string dims_of(const Case& c);

// The lines of a case that ran, without file.
std::vector<ManifestLine> lines_of(const Case& c, const RanCase& ran, const std::array<std::string, 2>& paths);

std::string write_manifest_line(const ManifestLine& line);
Result<ManifestLine> parse_manifest_line(std::string_view text);

// Sorts the lines. write_manifest(parse_manifest(text)) == text.
std::string write_manifest(Manifest manifest);
// Errors are the user's and name the line.
Result<Manifest> parse_manifest(std::string_view text);
bool looks_like_manifest(std::string_view text);

}  // namespace fusediff
