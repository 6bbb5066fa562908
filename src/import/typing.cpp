#include "import/typing.h"

#include <algorithm>
#include <string>
#include <vector>

#include "model/dtype.h"
#include "model/quote.h"
#include "mutate/scope.h"

namespace fusediff {

Status Typing::decide(const CapturedTensor& tensor, const InputRule& rule, TensorPlan& plan) const {
  const auto stated = options_.dtypes.find(rule.name);
  const bool is_stated = stated != options_.dtypes.end();
  const ElementType& type = tensor.type;
  if (type.raw) {
    if (!is_stated && type.text.find("V2") == std::string::npos) {
      return user_error(type.text + " says a width and no meaning: --dtype " + rule.name + "=DTYPE says it");
    }
    plan.from = plan.to = is_stated ? stated->second : DType::kBF16;
    if (!is_stated) say_("note: " + type.text + " is read as bf16, as ml_dtypes writes it; --dtype says otherwise");
    if (size_of(plan.from) != type.size) {
      return user_error("--dtype " + rule.name + "=" + std::string(name_of(plan.from)) + " is of " +
                        std::to_string(size_of(plan.from)) + " bytes, the elements of " + type.text + " are of " +
                        std::to_string(type.size));
    }
    return {};
  }
  plan.from = *type.dtype;
  plan.to = is_stated ? stated->second : plan.from;
  if (*type.dtype == DType::kU8 && size_of(plan.to) == 1) plan.from = plan.to;  // bytes that stand for something else
  if (converts(plan.from, plan.to)) return {};
  return user_error("--dtype " + rule.name + ": " + type.text + " cannot become " + std::string(name_of(plan.to)));
}

Status Typing::enter(const InputRule& rule, const TensorPlan& plan, Case& c) const {
  const auto& choices = rule.dtype.choices;
  const auto wrong = [&](const std::string& legal) {
    return user_error(std::string(name_of(plan.to)) + " is no dtype for it; legal: " + legal + "; --dtype " +
                      rule.name + "=DTYPE converts");
  };
  if (choices.empty()) {
    // The tensor whose dtype this one shares may not be in the file: then it follows.
    const InputRule* const holder = op_.source(rule.dtype.same_as);
    const bool open = holder != nullptr && holder->dtype.choices.size() > 1 && !c.dtypes.contains(holder->name);
    const auto legal = [&] { return std::count(holder->dtype.choices.begin(), holder->dtype.choices.end(), plan.to); };
    if (open && legal() > 0) c.dtypes[holder->name] = plan.to;
    const DType due = dtype_in(c, op_, rule.dtype, rule.name);
    return plan.to == due ? Status() : wrong(std::string(name_of(due)) + ", as " + quote(rule.dtype.same_as));
  }
  if (std::find(choices.begin(), choices.end(), plan.to) == choices.end()) {
    std::vector<std::string> legal;
    for (const DType dtype : choices) legal.emplace_back(name_of(dtype));
    return wrong(list_of(legal));
  }
  if (choices.size() > 1) c.dtypes[rule.name] = plan.to;
  return {};
}

}  // namespace fusediff
