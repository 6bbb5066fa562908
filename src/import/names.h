// Which tensor of a pool is which input, by name, and which belong together. No sizes, no types, no bytes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/schema.h"

namespace fusediff {

// Positions in the pool, by name of the operator's input, given, output, or attribute.
struct TensorGroup {
  std::string name;  // "": no group stands in the names
  std::map<std::string, std::size_t> sources;
  std::map<std::string, std::size_t> outputs;
  std::map<std::string, std::size_t> attrs;
};

struct Matching {
  std::vector<TensorGroup> groups;  // in the order of the file; at least one
  std::vector<std::size_t> unused;
};

// A tensor matches by its whole name or by what follows the last separator; what stands in front is its group. Tensors
// without one belong to every group that has none of its own. names: input -> the tensor's name, where they differ.
// An error: a name that is no input, or that no tensor has; nothing matches.
Result<Matching> match_names(const std::vector<std::string>& pool, const Operator& op,
                             const std::map<std::string, std::string>& names, std::string_view separator);

}  // namespace fusediff
