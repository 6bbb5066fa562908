#include "engine/unasked.h"

#include <algorithm>

#include "model/dtype.h"

namespace fusediff {
namespace {

bool may_be_float(const Operator& op, const DTypeRule& rule) {
  if (!rule.same_as.empty()) {
    const InputRule* input = op.input(rule.same_as);
    return input == nullptr || may_be_float(op, input->dtype);
  }
  return std::any_of(rule.choices.begin(), rule.choices.end(), [](DType dtype) { return is_float(dtype); });
}

template <typename Rules, typename Holds>
bool any(const Rules& rules, Holds holds) {
  return std::any_of(rules.begin(), rules.end(), holds);
}

}  // namespace

std::vector<std::string> unasked(const Operator& op) {
  std::vector<std::string> sentences;
  const auto say = [&](bool is_missing, const char* sentence) {
    if (is_missing) sentences.emplace_back(sentence);
  };
  say(!any(op.outputs, [](const OutputRule& o) { return o.stage.has_value(); }),
      "which step is to blame: give outputs a `stage`, and intermediate results as optional outputs");
  say(any(op.outputs, [&](const OutputRule& o) { return may_be_float(op, o.dtype) && !o.bound; }),
      "whether a rounding error is within its worst case: add `bound`; without one it is judged relative to unfused");
  say(!op.rows, "whether a row depends on its batch: add `rows`");
  say(!any(op.inputs, [](const InputRule& i) { return i.layout != LayoutRule::kDense; }),
      "strided, expanded and sliced inputs: add `layout`");
  say(op.inplace.empty(), "an output that lies on its input: add `inplace` where that is allowed");
  say(!op.gradient && any(op.inputs, [](const InputRule& i) { return i.role == Role::kCotangent; }),
      "whether it is the derivative of its forward: add `gradient`");
  return sentences;
}

}  // namespace fusediff
