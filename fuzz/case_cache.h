// From the bytes that libFuzzer hands around to the case that they spell, so that JSON is read once and not at every
// step. Bounded; it forgets everything when it is full.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "model/case.h"

namespace fusediff {

class CaseCache {
 public:
  // Where the files that cases name are; "": such cases are none.
  explicit CaseCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  struct Entry {
    std::optional<Case> c;  // nothing: the bytes are no case
    Hash128 hash;           // of the bytes
    std::string why;        // they are none
  };
  // Valid until the next call of either function.
  const Entry& find(std::string_view bytes);
  // For bytes that were just written from the case.
  void put(std::string_view bytes, const Case& c);

 private:
  Entry& slot(const Hash128& hash, std::size_t bytes);

  // One copy of each tensor of the folder, however many cases name it.
  void share_bits(Case& c);

  struct Hasher {
    std::size_t operator()(const Hash128& hash) const { return static_cast<std::size_t>(hash.low); }
  };
  std::unordered_map<Hash128, Entry, Hasher> entries_;
  std::filesystem::path folder_;
  std::unordered_map<std::string, std::shared_ptr<const std::vector<std::byte>>> shared_;  // as cases write them
  std::size_t bytes_ = 0;  // of the JSON of all entries: a measure of what they hold
};

}  // namespace fusediff
