// The CSV of the CANN tensor test kit (RFC 4180, with a header line).
#include <algorithm>

#include "import/suite.h"
#include "model/quote.h"

namespace fusediff {
namespace {

using Cells = std::vector<std::string>;

constexpr std::size_t kMostCells = 1 << 22;

// Cells with commas, quotes and newlines stand in double quotes; a quote in one is doubled.
Result<std::vector<Cells>> read_csv(std::string_view text) {
  std::vector<Cells> lines;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::size_t at = 0, cells = 0;
  while (at < text.size()) {
    Cells line;
    for (bool more = true; more;) {
      std::string cell;
      if (at < text.size() && text[at] == '"') {
        for (++at;; ++at) {
          if (at >= text.size())
            return user_error("line " + std::to_string(lines.size() + 1) + ": a quote is not closed");
          if (text[at] == '"' && at + 1 < text.size() && text[at + 1] == '"') {
            ++at;
          } else if (text[at] == '"') {
            ++at;
            break;
          }
          cell += text[at];
        }
      }
      while (at < text.size() && text[at] != ',' && text[at] != '\n') cell += text[at++];
      while (!cell.empty() && cell.back() == '\r') cell.pop_back();
      more = at < text.size() && text[at] == ',';
      ++at;
      line.push_back(std::move(cell));
      if (++cells > kMostCells) return user_error("more than " + std::to_string(kMostCells) + " cells");
    }
    if (line.size() > 1 || !line.front().empty()) lines.push_back(std::move(line));
  }
  return lines;
}

// One row by the names of its columns.
class RowReader {
 public:
  RowReader(const Cells& header, const Cells& cells) : header_(header), cells_(cells) {}

  const std::string* cell(std::string_view column) const {
    const auto at = static_cast<std::size_t>(std::find(header_.begin(), header_.end(), column) - header_.begin());
    return at < header_.size() && at < cells_.size() ? &cells_[at] : nullptr;
  }

  PyValue value(std::string_view column) {
    const std::string* text = cell(column);
    if (text == nullptr || text->empty()) return {};
    Result<PyValue> read = parse_py_literal(*text);
    if (read.ok()) return *std::move(read);
    if (problem.empty()) problem = std::string(column) + ": " + read.error().what;
    return {};
  }

  std::string problem;

 private:
  const Cells& header_;
  const Cells& cells_;
};

// The item at i; the only one stands for all.
const PyValue* item(const PyValue& list, std::size_t i) {
  if (!list.is(PyValue::Kind::kSequence) || list.items.empty()) return nullptr;
  if (list.items.size() == 1) return &list.items.front();
  return i < list.items.size() ? &list.items[i] : nullptr;
}

void read_tensors(RowReader& reader, SuiteRow& row) {
  const PyValue shapes = reader.value("tensor_view_shapes");
  const PyValue dtypes = reader.value("tensor_dtypes");
  const PyValue formats = reader.value("tensor_formats");
  const PyValue ranges = reader.value("input_data_ranges");
  if (!shapes.is(PyValue::Kind::kSequence)) {
    row.problem = "tensor_view_shapes is no list of shapes";
    return;
  }
  for (std::size_t i = 0; i < shapes.items.size(); ++i) {
    SuiteTensor tensor;
    for (const PyValue& size : shapes.items[i].items) {
      if (!size.is(PyValue::Kind::kInteger) || size.integer < 0) row.problem = "a shape holds what is no size";
      tensor.shape.push_back(size.integer);
    }
    const PyValue* dtype = item(dtypes, i);
    if (dtype != nullptr && dtype->is(PyValue::Kind::kString)) tensor.dtype = dtype->text;
    const PyValue* format = item(formats, i);
    if (format != nullptr && format->text != "ND") row.problem = "the format " + quote(format->text) + "; ND is read";
    if (const PyValue* range = item(ranges, i)) tensor.range = *range;
    row.tensors.push_back(std::move(tensor));
  }
}

SuiteRow read_row(const Cells& header, const Cells& cells, std::size_t position) {
  RowReader reader(header, cells);
  SuiteRow row;
  if (const std::string* name = reader.cell("testcase_name")) row.name = *name;
  if (row.name.empty()) row.name = "row_" + std::to_string(position);
  if (const std::string* op = reader.cell("api_name")) row.op = *op;
  if (cells.size() != header.size()) {
    row.problem = "has " + std::to_string(cells.size()) + " cells, the header " + std::to_string(header.size());
    return row;
  }
  read_tensors(reader, row);
  const PyValue attrs = reader.value("attributes");
  row.attrs = attrs.members;
  const PyValue outputs = reader.value("output_tensor_indexes");
  if (outputs.is(PyValue::Kind::kSequence)) {
    row.outputs.emplace();
    for (const PyValue& index : outputs.items) row.outputs->push_back(index.integer);
  }
  if (row.problem.empty()) row.problem = reader.problem;
  return row;
}

}  // namespace

Result<std::vector<SuiteRow>> read_ttk(std::string_view text) {
  const Result<std::vector<Cells>> lines = read_csv(text);
  if (!lines.ok()) return lines.error();
  if (lines->empty()) return user_error("no suite: it is empty");
  const Cells& header = lines->front();
  for (const char* column : {"api_name", "tensor_view_shapes", "tensor_dtypes"}) {
    if (std::find(header.begin(), header.end(), column) == header.end())
      return user_error(std::string("no suite: the column ") + column + " is missing");
  }
  std::vector<SuiteRow> rows;
  for (std::size_t i = 1; i < lines->size(); ++i) rows.push_back(read_row(header, (*lines)[i], i));
  return rows;
}

}  // namespace fusediff
