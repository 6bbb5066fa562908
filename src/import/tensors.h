// Captured tensors to cases: which tensor is which input of the operator, what sizes that makes, one case each group.
// Writes cases and the safetensors files beside them; prints nothing: what a person should see goes to `say`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "import/captured.h"
#include "model/dtype.h"
#include "model/schema.h"

namespace fusediff {

// One line, without a newline.
using Say = std::function<void(const std::string&)>;

struct TensorOptions {
  std::map<std::string, std::string> names;                   // input -> name of the tensor, where they differ
  std::map<std::string, DType> dtypes;                        // input -> what its elements are, or become
  std::map<std::string, std::string> attrs;                   // attribute -> its value as text
  std::map<std::string, std::int64_t> dims;                   // what the user states
  std::optional<std::pair<std::int64_t, std::int64_t>> rows;  // [low, high) of the operator's rows
  std::string separator = "/";                                // between the name of a group and that of a tensor
  std::string name;                                           // of the cases; "": of the file
  std::filesystem::path out;                                  // exists
  std::uint64_t max_bytes = std::uint64_t{1} << 30;           // of all tensors of a case
};

struct CapturedFile {
  std::filesystem::path path;
  const CaptureFormat* format = nullptr;
};

// The files' tensors together: one pool of names (several .npy), or one file alone. The result: how many cases were
// written; each, and each tensor that is not used, is a line. A group that makes no case is a line where others do, and
// the error where none does. Nothing is written where a file of one of the cases is
// there already with other content: an error that names it.
Result<int> import_tensors(const std::vector<CapturedFile>& files, const Operator& op, const TensorOptions& options,
                           const Say& say);

// "8", "0.5", "true", "softmax" as a value that the attribute takes.
Result<AttrValue> attr_value(const AttrRule& rule, const std::string& text);

}  // namespace fusediff
