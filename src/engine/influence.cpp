#include "engine/influence.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "model/expand.h"
#include "model/values.h"

namespace fusediff {
namespace {

using Views = std::vector<std::span<const std::byte>>;

// The ways to change one element, tried until one is legal. Floats: the negative, half, the double; integers and masks:
// the neighbours, and the value of another element of the row.
enum class Change { kNegate, kHalve, kDouble, kUp, kDown, kSwapWithNext };
constexpr std::array kChanges = {Change::kNegate, Change::kHalve, Change::kDouble,
                                 Change::kUp,     Change::kDown,  Change::kSwapWithNext};

std::optional<std::uint64_t> changed(DType dtype, std::uint64_t bits, Change change) {
  if (is_float(dtype)) {
    const double value = float_value(dtype, bits);
    if (!is_finite(dtype, bits)) return round_to_bits(dtype, 1.0);
    switch (change) {
      case Change::kNegate:
        return round_to_bits(dtype, value == 0 ? -1.0 : -value);
      case Change::kHalve:
        return round_to_bits(dtype, value == 0 ? 0.5 : value / 2);
      case Change::kDouble:
        return round_to_bits(dtype, value == 0 ? 1.0 : value * 2);
      default:
        return std::nullopt;
    }
  }
  const std::uint64_t mask = size_of(dtype) == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (size_of(dtype) * 8)) - 1;
  if (dtype == DType::kBool) return change == Change::kUp ? std::optional<std::uint64_t>(bits ^ 1) : std::nullopt;
  if (change == Change::kUp) return (bits + 1) & mask;
  if (change == Change::kDown) return (bits - 1) & mask;
  return std::nullopt;
}

// One element a row: the first, the last, and the column where the outputs differ.
std::vector<std::int64_t> elements_to_change(const Tensor& tensor, std::int64_t differing) {
  const std::int64_t rows = row_count(tensor), columns = column_count(tensor);
  std::set<std::int64_t> elements;
  if (columns == 0) return {};
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const std::int64_t column : {std::int64_t{0}, columns - 1, differing % columns})
      elements.insert(row * columns + column);
  }
  return {elements.begin(), elements.end()};
}

bool apply(const Tensor& tensor, const std::vector<std::int64_t>& elements, Change change,
           std::vector<std::byte>& bytes) {
  const std::size_t size = size_of(tensor.dtype);
  const std::int64_t columns = column_count(tensor);
  bool any = false;
  for (const std::int64_t i : elements) {
    std::byte* at = bytes.data() + static_cast<std::size_t>(i) * size;
    if (change == Change::kSwapWithNext) {
      if (columns < 2 || i % columns == columns - 1) continue;
      std::byte* next = at + size;
      any = any || std::memcmp(at, next, size) != 0;
      std::swap_ranges(at, at + size, next);
      continue;
    }
    const std::uint64_t before = load_bits(tensor.dtype, at);
    const std::optional<std::uint64_t> after = changed(tensor.dtype, before, change);
    if (!after || *after == before) continue;
    store_bits(tensor.dtype, *after, at);
    any = true;
  }
  return any;
}

// Up to two legal changes of one input: one alone may move a side by chance, at a tie say.
std::vector<std::vector<std::byte>> legal_changes(const Scene& scene, std::size_t input, std::int64_t differing) {
  const Tensor& tensor = scene.call.inputs[input];
  const std::vector<std::int64_t> elements = elements_to_change(tensor, differing);
  std::vector<std::vector<std::byte>> found;
  for (const Change change : kChanges) {
    if (elements.empty() || found.size() == 2) break;
    std::vector<std::byte> bytes(scene.inputs[input].begin(), scene.inputs[input].end());
    if (!apply(tensor, elements, change, bytes)) continue;
    if (check_values(bytes, scene.call.op->inputs[input], tensor, scene.call).ok()) found.push_back(std::move(bytes));
  }
  return found;
}

struct Moved {
  bool ran = false;
  std::array<bool, 2> side{};
};

// A side that does not give the same outputs twice moves by itself: it says nothing.
Moved run_changed(const Scene& scene, const std::array<const SideRun*, 2>& sides, const Views& inputs) {
  Moved moved;
  for (const Side side : kSides) {
    const std::size_t s = index_of(side);
    Execution execution;
    sides[s]->run(scene.runner, inputs, {scene.fills[s], {}, false}, execution);
    scene.budget.count(execution);
    if (execution.ending != Ending::kOk) return {};
    moved.side[s] = execution.outputs != scene.first[s]->outputs;
  }
  moved.ran = true;
  return moved;
}

// All changes of one name must show the same side deaf.
void conclude(const Scene& scene, const std::vector<Moved>& changes, const std::string& name,
              std::vector<std::string>& sentences) {
  if (changes.empty()) return;
  for (const Moved& moved : changes) {
    if (!moved.ran || moved.side[0] == moved.side[1] || moved.side != changes[0].side) return;
  }
  const bool target_moves = changes[0].side[0];
  const std::string& deaf = scene.sides[target_moves ? 1 : 0]->path();
  const std::string& other = scene.sides[target_moves ? 0 : 1]->path();
  sentences.push_back(deaf + " does not follow " + name + ": changing it moves the outputs of " + other +
                      " and not those of " + deaf);
}

std::vector<AttrValue> other_values(const AttrRule& rule, const AttrValue& value) {
  std::vector<AttrValue> others;
  const auto add = [&](const AttrValue& other) {
    if (other != value) others.push_back(other);
  };
  if (rule.derived) return others;
  if (rule.kind == AttrKind::kBool) {
    add(std::int64_t{0});
    add(std::int64_t{1});
  }
  for (const std::string& choice : rule.choices) add(choice);
  if (rule.kind == AttrKind::kInt) {
    add(rule.int_low);
    add(rule.int_high);
  }
  if (rule.kind == AttrKind::kFloat) {
    add(rule.float_low);
    add(rule.float_high);
  }
  if (rule.standard) add(*rule.standard);
  return others;
}

bool is_legal(const Call& call) {
  for (const Expr& rule : call.op->where) {
    const Result<std::int64_t> holds = call.evaluate(rule);
    if (!holds.ok() || *holds == 0) return false;
  }
  for (const AttrRule& rule : call.op->attrs) {
    if (!rule.condition) continue;
    const Result<std::int64_t> holds = call.evaluate(*rule.condition);
    if (!holds.ok()) return false;
    const auto at =
        std::find_if(call.attrs.begin(), call.attrs.end(), [&](const CallAttr& a) { return a.name == rule.name; });
    if (*holds == 0 && rule.standard && at->value != *rule.standard) return false;
  }
  return true;
}

// Sizes, presence and shapes hang on dims and attributes: an attribute whose change would alter a tensor is left alone.
bool keeps_tensors(const Call& before, const Call& after) {
  const auto same = [](const auto& rules, const Call& a, const Call& b) {
    for (const auto& rule : rules) {
      if (rule.condition) {
        const Result<std::int64_t> x = a.evaluate(*rule.condition), y = b.evaluate(*rule.condition);
        if (!x.ok() || !y.ok() || (*x != 0) != (*y != 0)) return false;
      }
      for (const Expr& entry : rule.shape) {
        const Result<std::int64_t> x = a.evaluate(entry), y = b.evaluate(entry);
        if (!x.ok() || !y.ok() || *x != *y) return false;
      }
    }
    return true;
  };
  return same(before.op->inputs, before, after) && same(before.op->outputs, before, after);
}

// Both sides on another spelling of the call; nothing where one does not offer it.
std::optional<Moved> run_call(const Scene& scene, const Call& call, const Views& inputs) {
  std::array<std::optional<SideRun>, 2> sides;
  for (const Side side : kSides) {
    const SideRun& run = *scene.sides[index_of(side)];
    std::optional<SideRun>& changed_run = sides[index_of(side)];
    if (side == Side::kTarget) {
      changed_run.emplace(PathOf{&run.target(), run.path()}, call, Bank::kFirst, false);
      continue;
    }
    Result<Adapted> adapted = adapt(call, *run.call().op, false);
    if (!adapted.ok()) return std::nullopt;
    changed_run.emplace(PathOf{&run.target(), run.path()}, *std::move(adapted), Bank::kSecond, false);
  }
  return run_changed(scene, {&*sides[0], &*sides[1]}, inputs);
}

void change_attribute(const Scene& scene, std::size_t attr, std::vector<std::string>& sentences) {
  const AttrRule& rule = scene.call.op->attrs[attr];
  std::vector<Moved> changes;
  for (const AttrValue& value : other_values(rule, scene.call.attrs[attr].value)) {
    if (changes.size() == 2) break;
    Call call = scene.call;
    call.attrs[attr].value = value;
    if (!is_legal(call) || !keeps_tensors(scene.call, call)) continue;
    const std::optional<Moved> moved = run_call(scene, call, scene.inputs);
    if (!moved) return;
    if (moved->ran) changes.push_back(*moved);
  }
  // A number off its value may leave one side where it is by chance; a flag has but one other value.
  const bool is_number = rule.kind == AttrKind::kInt || rule.kind == AttrKind::kFloat;
  if (is_number && changes.size() < 2) return;
  conclude(scene, changes, rule.name, sentences);
}

// The same elements laid out densely must give the same outputs: a side whose outputs move reads by another stride than
// the tensor's.
void change_strides(const Scene& scene, std::size_t input, std::vector<std::string>& sentences) {
  if (is_dense(scene.call.inputs[input])) return;
  Call call = scene.call;
  Tensor& tensor = call.inputs[input];
  for (const Tensor& output : call.outputs) {
    if (output.present && output.on == static_cast<int>(input)) return;
  }
  tensor.stride = dense_strides(tensor.shape);
  const std::vector<std::byte> full = expanded(scene.call.inputs[input], scene.inputs[input]);
  Views inputs = scene.inputs;
  inputs[input] = full;
  const std::optional<Moved> moved = run_call(scene, call, inputs);
  if (!moved || !moved->ran || moved->side[0] == moved->side[1]) return;
  const std::string& deaf = scene.sides[moved->side[0] ? 0 : 1]->path();
  const std::string& other = scene.sides[moved->side[0] ? 1 : 0]->path();
  sentences.push_back(deaf + " does not follow the strides of " + tensor.name +
                      ": the same elements in a row move the outputs of " + deaf + " and not those of " + other);
}

}  // namespace

std::vector<std::string> find_influence(const Scene& scene, std::int64_t differing) {
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < scene.call.inputs.size() && scene.budget.left(); ++i) {
    if (!scene.call.inputs[i].present || scene.inputs[i].empty()) continue;
    std::vector<Moved> changes;
    for (const std::vector<std::byte>& bytes : legal_changes(scene, i, differing)) {
      Views inputs = scene.inputs;
      inputs[i] = bytes;
      changes.push_back(run_changed(scene, scene.sides, inputs));
    }
    conclude(scene, changes, scene.call.inputs[i].name, sentences);
    change_strides(scene, i, sentences);
  }
  for (std::size_t a = 0; a < scene.call.attrs.size() && scene.budget.left(); ++a)
    change_attribute(scene, a, sentences);
  return sentences;
}

}  // namespace fusediff
