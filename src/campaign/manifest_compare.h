// Two manifests held against each other: which cases give other bits. Runs nothing.
//
// Where an output stands whole in both, the first differing element and both values are exact, and `agree` is honoured;
// where it is hashed by blocks, only the range of elements is known in which the first difference lies, and a change
// that `agree` might allow counts as one, which is said. An output of a path that is not deterministic is counted, not
// reported.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "campaign/manifest.h"

namespace fusediff {

// Outputs of one operator, side, name and dtype.
struct ManifestGroup {
  std::string op, side, output;
  std::string dtype;
  std::int64_t same = 0;
  std::int64_t changed = 0;
  std::int64_t unchecked = 0;           // of changed: `agree` allows some ULP, but the values are not there
  std::int64_t agreed = 0;              // other bits, all within `agree` (or other NaN of the same)
  std::int64_t not_deterministic = 0;   // other bits of a path that promises none
  std::string example;                  // of changed: the case's file and hash, and its dims
  std::optional<std::int64_t> first;    // exact: of the first differing element of the example
  std::array<std::string, 2> values;    // there
  std::array<std::int64_t, 2> range{};  // without it: first and last element between which it lies; {0, -1}: unknown
};

struct ManifestChange {
  std::string op, file, case_hash, side, what;
};

struct ManifestComparison {
  std::vector<std::string> set_up;               // what differs between the headers
  std::vector<ManifestGroup> groups;             // by operator, side, output, dtype
  std::vector<ManifestChange> changes;           // of status, of inputs, of which outputs there are
  std::array<std::vector<std::string>, 2> only;  // files of cases that stand in one of the two
  std::int64_t cases = 0;                        // in both

  bool is_changed() const;
};

ManifestComparison compare(const Manifest& before, const Manifest& after);
std::string describe(const ManifestComparison& comparison);          // text
std::string write_comparison(const ManifestComparison& comparison);  // JSON, one line

}  // namespace fusediff
