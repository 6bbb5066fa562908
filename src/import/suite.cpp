#include "import/suite.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "base/files.h"
#include "import/destination.h"
#include "import/dims.h"
#include "import/vendor_ops.h"
#include "model/call.h"
#include "model/case_json.h"
#include "model/quote.h"
#include "model/values.h"
#include "mutate/recipes.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxSuiteBytes = std::uint64_t{1} << 28;

std::string_view after_spaces(std::string_view text) {
  const std::size_t at = text.find_first_not_of(" \t\r\n");
  return at == std::string_view::npos ? std::string_view() : text.substr(at);
}

bool is_atk(std::string_view text) {
  text = after_spaces(text);
  return text.starts_with('[') || text.starts_with('{');
}
bool is_ttk(std::string_view text) {
  return text.substr(0, text.find('\n')).find("tensor_view_shapes") != std::string_view::npos;
}

constexpr std::array kFormats = {SuiteFormat{"atk", is_atk, read_atk}, SuiteFormat{"ttk", is_ttk, read_ttk}};

std::optional<DType> dtype_of(std::string_view theirs) {
  constexpr std::pair<std::string_view, DType> kNames[] = {
      {"fp64", DType::kF64},          {"float64", DType::kF64},
      {"double", DType::kF64},        {"fp32", DType::kF32},
      {"float32", DType::kF32},       {"float", DType::kF32},
      {"fp16", DType::kF16},          {"float16", DType::kF16},
      {"half", DType::kF16},          {"bf16", DType::kBF16},
      {"bfloat16", DType::kBF16},     {"int64", DType::kI64},
      {"int64_t", DType::kI64},       {"int32", DType::kI32},
      {"int32_t", DType::kI32},       {"int16", DType::kI16},
      {"int8", DType::kI8},           {"uint8", DType::kU8},
      {"bool", DType::kBool},         {"float8_e4m3fn", DType::kF8E4M3FN},
      {"float8_e5m2", DType::kF8E5M2}};
  for (const auto& [name, dtype] : kNames) {
    if (name == theirs) return dtype;
  }
  return std::nullopt;
}

// A number, or "inf", "-inf", "nan" in quotes.
std::optional<double> number_of(const PyValue& value) {
  if (value.is_number()) return value.real;
  if (value.is(PyValue::Kind::kSequence) && value.items.size() == 1) return number_of(value.items.front());
  double real = 0;
  const char* const end = value.text.data() + value.text.size();
  if (value.is(PyValue::Kind::kString) && std::from_chars(value.text.data(), end, real).ptr == end &&
      !value.text.empty())
    return real;
  return std::nullopt;
}

class RowCase {
 public:
  RowCase(const SuiteRow& row, const VendorOp& vendor, const Operator& op, std::vector<std::string>& notes)
      : row_(row), vendor_(vendor), op_(op), notes_(notes) {
    c_.op = op.name;
  }

  Result<Case> make(std::uint64_t max_bytes) {
    if (Status took = take_inputs(); !took.ok()) return took.error();
    if (Status took = take_attrs(); !took.ok()) return took.error();
    const Result<SolvedDims> solved = solve_dims(op_, claims_);
    if (!solved.ok()) return solved.error();
    for (const std::string& note : solved->notes) notes_.push_back(note);
    c_.dims = solved->dims;
    if (Status took = take_outputs(); !took.ok()) return took.error();
    const Result<Call> call = bind(c_, op_, max_bytes);
    if (!call.ok()) return call.error();
    if (Status fit = check_outputs(*call); !fit.ok()) return fit.error();
    for (const Source& source : drawn_sources(*call)) {
      const auto drawn = draw_values(c_.inputs.at(source.rule->name), *source.rule, *source.tensor, *call);
      if (!drawn.ok()) return drawn.error();
    }
    return c_;
  }

 private:
  // Our input at this place, or of this name; nullptr: an output, or unknown.
  const InputRule* rule_of(std::size_t i) const {
    const SuiteTensor& tensor = row_.tensors[i];
    if (tensor.name.empty()) return i < vendor_.inputs.size() ? op_.input(vendor_.inputs[i]) : nullptr;
    const bool known = std::find(vendor_.inputs.begin(), vendor_.inputs.end(), tensor.name) != vendor_.inputs.end();
    return known ? op_.input(tensor.name) : nullptr;
  }

  Status take_inputs() {
    for (std::size_t i = 0; i < row_.tensors.size(); ++i) {
      const InputRule* rule = rule_of(i);
      if (rule == nullptr && !row_.tensors[i].name.empty())
        return user_error("the input " + quote(row_.tensors[i].name) + " is none of " + op_.name);
      if (rule == nullptr) break;  // outputs follow
      if (Status took = take_input(row_.tensors[i], *rule, i); !took.ok())
        return user_error(quote(rule->name) + ": " + took.error().what);
    }
    return {};
  }

  Status take_input(const SuiteTensor& tensor, const InputRule& rule, std::size_t place) {
    const std::optional<DType> dtype = dtype_of(tensor.dtype);
    if (!dtype) return user_error("the dtype " + quote(tensor.dtype) + " is none that fusediff has");
    const auto& choices = rule.dtype.choices;
    if (choices.size() > 1) c_.dtypes[rule.name] = *dtype;
    const DType due = choices.size() == 1 ? choices.front() : choices.empty() ? c_.dtypes[rule.dtype.same_as] : *dtype;
    if (due != *dtype)
      return user_error(std::string(name_of(*dtype)) + ", the operator takes " + std::string(name_of(due)));
    const auto shape = with_rank(tensor.shape, rule.shape.size());
    if (!shape || tensor.shape.size() != rule.shape.size())
      return user_error("of shape " + shape_text(tensor.shape) + ", the operator takes " +
                        std::to_string(rule.shape.size()) + " axes");
    for (std::size_t d = 0; d < shape->size(); ++d)
      claims_.push_back({rule.shape[d], (*shape)[d], "axis " + std::to_string(d) + " of " + quote(rule.name)});
    InputValue& value = c_.inputs[rule.name];
    value.fill.seed = place + 1;
    return take_range(tensor.range, *dtype, rule.name, value.fill);
  }

  // [low, high], one number, or {"name": "nd", "mean": ..., "std": ...}.
  Status take_range(const PyValue& range, DType dtype, const std::string& name, Fill& fill) {
    const double most = is_float(dtype) ? float_format(dtype).max_finite : HUGE_VAL;
    const auto bounded = [&](double value) {
      if (std::isfinite(value) && std::fabs(value) > most) {
        notes_.push_back(quote(name) + ": the range ends at " +
                         std::to_string(std::int64_t(std::copysign(most, value))) + ", the largest finite " +
                         std::string(name_of(dtype)));
        return std::copysign(most, value);
      }
      return value;
    };
    const auto constant = [&](double value) {
      fill.kind = FillKind::kConstant;
      fill.seed = 0;
      fill.constant = Literal{Literal::Kind::kReal, value, 0, 0};
      if (!is_float(dtype)) fill.constant = Literal{Literal::Kind::kInteger, 0, static_cast<std::int64_t>(value), 0};
    };
    if (range.is(PyValue::Kind::kDict)) {
      const PyValue* kind = range.find("name");
      const PyValue* mean = range.find("mean");
      const PyValue* deviation = range.find("std");
      const bool normal = kind != nullptr && (kind->text == "nd" || kind->text == "normal");
      if (!normal || mean == nullptr || deviation == nullptr || !number_of(*mean) || !number_of(*deviation))
        return user_error("a distribution that is not read; nd with one mean and one std is");
      fill.kind = FillKind::kNormal;
      fill.a = *number_of(*mean);
      fill.b = *number_of(*deviation);
      return {};
    }
    if (range.is(PyValue::Kind::kSequence) && range.items.size() == 2) {
      const auto low = number_of(range.items[0]), high = number_of(range.items[1]);
      if (!low || !high || *low > *high) return user_error("a range that is not read; two rising numbers are");
      if (*low == *high) return constant(*low), Status();
      if (!std::isfinite(*low) || !std::isfinite(*high)) return user_error("a range with an end that is not finite");
      fill.kind = FillKind::kUniform;
      fill.a = bounded(*low);
      fill.b = bounded(*high);
      return {};
    }
    const auto one = number_of(range);
    if (!one) return user_error("range values that are not read; [low, high], a number and nd are");
    constant(*one);
    return {};
  }

  Status take_attrs() {
    for (const auto& [name, value] : row_.attrs) {
      const auto known = std::find_if(vendor_.attrs.begin(), vendor_.attrs.end(),
                                      [&name = name](const auto& a) { return a.theirs == name; });
      if (known == vendor_.attrs.end()) return user_error("the attribute " + quote(name) + " is not known");
      if (value.is(PyValue::Kind::kNone)) continue;
      if (Status took = take_attr(*known, value); !took.ok())
        return user_error("the attribute " + quote(name) + ": " + took.error().what);
    }
    return {};
  }

  Status take_attr(const VendorAttr& known, const PyValue& given) {
    const PyValue& value = given.is(PyValue::Kind::kSequence) && given.items.size() == 1 ? given.items[0] : given;
    const bool whole = value.is(PyValue::Kind::kInteger) || value.is(PyValue::Kind::kBool);
    if (!known.size.empty()) {
      if (!whole) return user_error("no whole number");
      claims_.push_back({*Expr::parse(known.size), value.integer, "the attribute " + std::string(known.theirs)});
      return {};
    }
    if (known.ours.empty()) return {};
    const AttrRule* rule = op_.attr(known.ours);
    if (rule == nullptr) return user_error("the target's operator has none");
    if (!known.choices.empty()) {
      if (!whole || value.integer < 0 || value.integer >= std::int64_t(known.choices.size()))
        return user_error("a number that stands for nothing");
      c_.attrs[rule->name] = std::string(known.choices[static_cast<std::size_t>(value.integer)]);
      return {};
    }
    if (rule->kind == AttrKind::kFloat) {
      if (!value.is_number()) return user_error("no number");
      c_.attrs[rule->name] = value.real;
      return {};
    }
    if (rule->kind == AttrKind::kChoice) {
      c_.attrs[rule->name] = value.text;
      return {};
    }
    if (!whole) return user_error("no whole number");
    if (rule->derived) {
      claims_.push_back({*rule->derived, value.integer, "the attribute " + std::string(known.theirs)});
    } else {
      c_.attrs[rule->name] = value.integer;
    }
    return {};
  }

  // Outputs that the row does not compare are not asked for, where the operator can do without.
  Status take_outputs() {
    if (!row_.outputs) return {};
    const auto first = static_cast<std::int64_t>(vendor_.inputs.size());
    std::set<std::string_view> wanted;
    for (const std::int64_t index : *row_.outputs) {
      if (index < first || index - first >= std::int64_t(vendor_.outputs.size()))
        return user_error("the output at " + std::to_string(index) + " is none of " + op_.name);
      wanted.insert(vendor_.outputs[static_cast<std::size_t>(index - first)]);
    }
    for (const OutputRule& rule : op_.outputs) {
      if (rule.optional && !wanted.contains(rule.name)) c_.unwanted.push_back(rule.name);
    }
    std::sort(c_.unwanted.begin(), c_.unwanted.end());
    return {};
  }

  // Joined axes are the same elements; a different number of them is another operator.
  Status check_outputs(const Call& call) const {
    for (std::size_t i = vendor_.inputs.size(); i < row_.tensors.size(); ++i) {
      if (!row_.tensors[i].name.empty() || i - vendor_.inputs.size() >= vendor_.outputs.size()) continue;
      const std::string_view name = vendor_.outputs[i - vendor_.inputs.size()];
      for (const Tensor& tensor : call.outputs) {
        if (tensor.name != name) continue;
        std::int64_t stated = 1;
        for (const std::int64_t size : row_.tensors[i].shape) stated *= size;
        if (stated != element_count(tensor))
          return user_error("the output " + quote(name) + " has the shape " + shape_text(row_.tensors[i].shape) +
                            " there and " + shape_text(tensor.shape) + " here");
      }
    }
    return {};
  }

  const SuiteRow& row_;
  const VendorOp& vendor_;
  const Operator& op_;
  std::vector<std::string>& notes_;
  std::vector<SizeClaim> claims_;
  Case c_;
};

std::string line_of(const Case& c, const std::vector<std::string>& notes) {
  std::string line = c.op;
  for (const auto& [dim, size] : c.dims) line += " " + dim + "=" + std::to_string(size);
  for (const std::string& note : notes) line += "; " + note;
  return line;
}

}  // namespace

std::span<const SuiteFormat> suite_formats() { return kFormats; }

Result<Case> case_of_row(const SuiteRow& row, const Schema& schema, std::uint64_t max_bytes,
                         std::vector<std::string>& notes) {
  if (!row.problem.empty()) return user_error(row.problem);
  std::vector<std::string> known;
  for (const VendorOp& vendor : vendor_ops()) {
    known.emplace_back(vendor.theirs);
    if (vendor.theirs != row.op) continue;
    const Operator* op = schema.find(vendor.ours);
    if (op == nullptr) return user_error("the target does not offer " + std::string(vendor.ours));
    return RowCase(row, vendor, *op, notes).make(max_bytes);
  }
  return user_error(not_one_of(row.op, "an operator that is known", known));
}

Result<int> import_suite(const fs::path& file, const SuiteFormat& format, const Schema& schema,
                         const TensorOptions& options, const Say& say) {
  const Result<std::string> text = read_file(file, kMaxSuiteBytes);
  if (!text.ok()) return text.error();
  const auto in_file = [&](const std::string& what) { return user_error(quote(file.string()) + ": " + what); };
  const Result<std::vector<SuiteRow>> rows = format.read(*text);
  if (!rows.ok()) return in_file(rows.error().what);
  std::vector<NewFile> files;
  std::vector<std::string> lines;
  FileNames names;
  std::string first;
  for (const SuiteRow& row : *rows) {
    const std::string name = names.take(row.name);
    std::vector<std::string> notes;
    const Result<Case> c = case_of_row(row, schema, options.max_bytes, notes);
    if (!c.ok()) {
      if (first.empty()) first = row.name + ": " + c.error().what;
      say("no case: " + row.name + ": " + c.error().what);
      continue;
    }
    files.push_back({options.out / (name + ".json"), write_case(*c, 2) + "\n"});
    lines.push_back(line_of(*c, notes));
    if (Status may = may_write(files.back().place, files.back().text); !may.ok()) return may.error();
  }
  if (files.empty()) return in_file(first.empty() ? "no case stands in it" : first);
  if (Status wrote = write_all(options.out, files); !wrote.ok()) return wrote.error();
  for (std::size_t i = 0; i < files.size(); ++i) say("case " + files[i].place.string() + ": " + lines[i]);
  return static_cast<int>(files.size());
}

}  // namespace fusediff
