// Suites of test cases as other tools keep them: rows of shapes, dtypes, value ranges and attributes. Reading a file
// gives rows, which know no operator of ours; a row becomes a case with the operator's schema, or a reason why not.
//
//   atk  JSON: a list of objects with "inputs" of type tensor or attr (CANN operator test kit)
//   ttk  CSV with a header line and Python literals in the cells (CANN tensor test kit)
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "import/literal.h"
#include "import/tensors.h"
#include "model/case.h"
#include "model/schema.h"

namespace fusediff {

struct SuiteTensor {
  std::string name;   // "": told by its place
  std::string dtype;  // as the file says it
  std::vector<std::int64_t> shape;
  PyValue range;  // two numbers, one number, or a dict; none: not stated
};

struct SuiteRow {
  std::string name;
  std::string op;
  std::vector<SuiteTensor> tensors;  // inputs, then (ttk) outputs
  std::vector<PyMember> attrs;
  std::optional<std::vector<std::int64_t>> outputs;  // positions in `tensors` that are compared
  std::string problem;                               // why the row itself is not read
};

struct SuiteFormat {
  std::string_view name;
  bool (*is)(std::string_view text);
  Result<std::vector<SuiteRow>> (*read)(std::string_view text);
};
std::span<const SuiteFormat> suite_formats();

Result<std::vector<SuiteRow>> read_atk(std::string_view text);
Result<std::vector<SuiteRow>> read_ttk(std::string_view text);

// The row as a case of one of the schema's operators. notes: what is not as the row says. max_bytes: of all tensors.
Result<Case> case_of_row(const SuiteRow& row, const Schema& schema, std::uint64_t max_bytes,
                         std::vector<std::string>& notes);

// Writes a case each row into the folder, a line each; the result is how many. An error where none could be written, or
// where a file of one of them is there already with other content: then nothing is written.
Result<int> import_suite(const std::filesystem::path& file, const SuiteFormat& format, const Schema& schema,
                         const TensorOptions& options, const Say& say);

}  // namespace fusediff
