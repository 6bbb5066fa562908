// The numbers of a finding's plots, taken from the tensors of its bundle. Draws nothing.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "model/finding.h"
#include "model/safetensors.h"

namespace fusediff {

// The tensors of a bundle, each read when it is asked for.
class Tensors {
 public:
  explicit Tensors(const std::filesystem::path& bundle);
  // From outputs.safetensors ("target/y") or inputs.safetensors ("x"); nothing where it is not there.
  std::optional<StoredTensor> output(const std::string& name) const;
  std::optional<StoredTensor> input(const std::string& name) const;
  bool has_outputs() const { return has_outputs_; }
  // What keeps the outputs from being shown; "": nothing.
  std::string unread() const { return unread_; }

 private:
  std::optional<StoredTensor> read(const std::filesystem::path& file, const std::string& name) const;
  std::filesystem::path bundle_;
  bool has_outputs_ = false;
  mutable std::string unread_;
};

// [{"output", "dtype", "elements", "differing", "max_ulp", "bucket", "at": [...], "ulp": [...], "told": n}]: of each
// bucket of `bucket` neighbouring elements the largest distance and where it is; bucket 1 shows every element. A
// distance of -1 is a NaN against a number. told: how many elements the finding says differ, where the recorded run
// differs in another number.
nlohmann::ordered_json ulp_plots(const Finding& finding, const Tensors& tensors, std::size_t plots, std::size_t points);

// [{"pick", "by", "row", "slot", "rows", "order", "from", "candidates": [{"index", "value": [..2], "bits": [..2],
// "ulp": [..2], "slot": [..2]}], "hidden": n, "stages": [...], "sums": [...]}]: those nearest to the boundary on either
// side; ulp is the distance to the rank that the against side's pick has there, with its sign, null for NaN; slot -1 is
// not picked, null not known.
nlohmann::ordered_json tie_pictures(const Finding& finding, const Tensors& tensors);

}  // namespace fusediff
