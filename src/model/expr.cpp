#include "model/expr.h"

#include <algorithm>
#include <array>
#include <limits>

#include "model/expr_code.h"
#include "model/quote.h"

namespace fusediff {

namespace {

// A number, or a string when `text` is not null. Not initialised: the stack is large and written before it is read.
struct Operand {
  std::int64_t number;
  const char* text;
  std::size_t size;
};

Operand string_operand(std::string_view text) { return {0, text.data() == nullptr ? "" : text.data(), text.size()}; }

Error wrong(const std::string& text, const ExprStep& step, std::string_view what) {
  const std::string_view part = std::string_view(text).substr(step.begin, step.end - step.begin);
  std::string message = "in expression " + quote(text) + ": ";
  if (part != text) message += quote(part) + " ";
  return user_error(message.append(what));
}

enum class Outcome { kFine, kOverflow, kZero };

Outcome divide(ExprOp op, std::int64_t& left, std::int64_t right) {
  if (right == 0) return Outcome::kZero;
  if (right == -1 && left == std::numeric_limits<std::int64_t>::min()) return Outcome::kOverflow;
  left = op == ExprOp::kDivide ? left / right : left % right;
  return Outcome::kFine;
}

Outcome compute(ExprOp op, std::int64_t& left, std::int64_t right) {
  bool overflow = false;
  switch (op) {
    case ExprOp::kMultiply:
      overflow = __builtin_mul_overflow(left, right, &left);
      break;
    case ExprOp::kAdd:
      overflow = __builtin_add_overflow(left, right, &left);
      break;
    case ExprOp::kSubtract:
      overflow = __builtin_sub_overflow(left, right, &left);
      break;
    case ExprOp::kLess:
      left = left < right;
      break;
    case ExprOp::kLessEqual:
      left = left <= right;
      break;
    case ExprOp::kGreater:
      left = left > right;
      break;
    case ExprOp::kGreaterEqual:
      left = left >= right;
      break;
    case ExprOp::kEqual:
      left = left == right;
      break;
    case ExprOp::kNotEqual:
      left = left != right;
      break;
    default:
      return divide(op, left, right);
  }
  return overflow ? Outcome::kOverflow : Outcome::kFine;
}

std::string_view say(Outcome outcome) { return outcome == Outcome::kZero ? "divides by zero" : "overflows 64 bits"; }

constexpr std::string_view kStringAsNumber = "uses a string as a number";

// Strings may only meet in == and !=. True when done; false with `mixed` untouched means that both are numbers.
bool compare_strings(ExprOp op, Operand& left, const Operand& right, bool& mixed) {
  if (left.text == nullptr && right.text == nullptr) return false;
  mixed = left.text == nullptr || right.text == nullptr || (op != ExprOp::kEqual && op != ExprOp::kNotEqual);
  if (mixed) return true;
  const bool equal = std::string_view(left.text, left.size) == std::string_view(right.text, right.size);
  left = {equal == (op == ExprOp::kEqual) ? 1 : 0, nullptr, 0};
  return true;
}

// One step on the top of the stack; nullptr, or what is wrong with it.
std::string_view apply(const ExprStep& step, Operand* stack, std::size_t& top, std::size_t& next) {
  Operand& last = stack[top - 1];
  switch (step.op) {
    case ExprOp::kNegate:
      if (last.text != nullptr) return kStringAsNumber;
      return __builtin_sub_overflow(std::int64_t{0}, last.number, &last.number) ? say(Outcome::kOverflow) : "";
    case ExprOp::kNot:
      if (last.text != nullptr) return kStringAsNumber;
      last.number = last.number == 0;
      return "";
    case ExprOp::kTruth:
      if (last.text != nullptr) return kStringAsNumber;
      last.number = last.number != 0;
      return "";
    case ExprOp::kAndJump:
    case ExprOp::kOrJump:
      if (last.text != nullptr) return kStringAsNumber;
      if ((last.number != 0) == (step.op == ExprOp::kOrJump)) {
        last.number = last.number != 0;
        next = static_cast<std::size_t>(step.value);
      } else {
        --top;
      }
      return "";
    default:
      break;
  }
  const Operand right = stack[--top];
  Operand& left = stack[top - 1];
  bool mixed = false;
  if (compare_strings(step.op, left, right, mixed)) return mixed ? kStringAsNumber : "";
  const Outcome outcome = compute(step.op, left.number, right.number);
  return outcome == Outcome::kFine ? "" : say(outcome);
}

// look_up(step, name, value) says what a name stands for.
template <typename LookUp>
Result<std::int64_t> run(const ExprCode& code, const std::string& text, const LookUp& look_up) {
  std::array<Operand, kExprStack> stack;  // NOLINT(cppcoreguidelines-pro-type-member-init): written before read
  std::size_t top = 0;
  for (std::size_t next = 0; next < code.steps.size();) {
    const ExprStep& step = code.steps[next++];
    if (step.op == ExprOp::kConstant) {
      stack[top++] = {step.value, nullptr, 0};
    } else if (step.op == ExprOp::kString) {
      stack[top++] = string_operand(code.strings[static_cast<std::size_t>(step.value)]);
    } else if (step.op == ExprOp::kName) {
      ExprValue value;
      if (!look_up(step, code.strings[static_cast<std::size_t>(step.value)], value)) {
        return wrong(text, step, "is not a known name");
      }
      const auto* number = std::get_if<std::int64_t>(&value);
      stack[top++] = number != nullptr ? Operand{*number, nullptr, 0} : string_operand(std::get<1>(value));
    } else {
      const std::string_view trouble = apply(step, stack.data(), top, next);
      if (!trouble.empty()) return wrong(text, step, trouble);
    }
  }
  if (stack[0].text != nullptr) return wrong(text, code.steps.back(), "is a string where a number belongs");
  return stack[0].number;
}

}  // namespace

Expr::Expr(std::int64_t constant) : text_(std::to_string(constant)), constant_(constant) {}

Result<std::int64_t> Expr::evaluate(const ExprScope& scope) const {
  if (code_ == nullptr) return constant_;
  return run(*code_, text_, [&scope](const ExprStep&, const std::string& name, ExprValue& value) {
    return scope && scope(name, value);
  });
}

Result<std::int64_t> Expr::evaluate(ExprSlots slots, const void* context) const {
  if (code_ == nullptr) return constant_;
  return run(*code_, text_, [slots, context](const ExprStep& step, const std::string&, ExprValue& value) {
    return step.slot != kNoSlot && slots(context, step.slot, value);
  });
}

Expr Expr::resolved(std::span<const std::string> names, std::uint64_t key) const {
  Expr expr = *this;
  expr.slots_key_ = key;
  if (code_ == nullptr) return expr;
  ExprCode code = *code_;
  for (ExprStep& step : code.steps) {
    step.slot = kNoSlot;
    if (step.op != ExprOp::kName) continue;
    const auto at = std::find(names.begin(), names.end(), code.strings[static_cast<std::size_t>(step.value)]);
    if (at != names.end()) step.slot = static_cast<std::uint32_t>(at - names.begin());
  }
  expr.code_ = std::make_shared<const ExprCode>(std::move(code));
  return expr;
}

std::vector<std::int64_t> Expr::constants() const {
  if (code_ == nullptr) return {constant_};
  std::vector<std::int64_t> found;
  for (const ExprStep& step : code_->steps) {
    if (step.op == ExprOp::kConstant) found.push_back(step.value);
  }
  return found;
}

namespace {

bool is_push(ExprOp op) { return op == ExprOp::kConstant || op == ExprOp::kName || op == ExprOp::kString; }

bool may_compare(ExprKind left, ExprKind right) {
  return left == right || left == ExprKind::kUnknown || right == ExprKind::kUnknown;
}

// The kinds that a step leaves on the stack; false when a string is used as a number. A jump is taken as not taken:
// both ways leave one number.
bool step_kinds(const ExprStep& step, std::vector<ExprKind>& stack) {
  const ExprKind last = stack.back();
  if (step.op == ExprOp::kEqual || step.op == ExprOp::kNotEqual) {
    stack.pop_back();
    const bool fine = may_compare(stack.back(), last);
    stack.back() = ExprKind::kNumber;
    return fine;
  }
  const bool unary = step.op == ExprOp::kNegate || step.op == ExprOp::kNot || step.op == ExprOp::kTruth;
  stack.pop_back();
  bool fine = last != ExprKind::kString;
  if (step.op == ExprOp::kAndJump || step.op == ExprOp::kOrJump) return fine;
  if (!unary) {
    fine = fine && stack.back() != ExprKind::kString;
    stack.pop_back();
  }
  stack.push_back(ExprKind::kNumber);
  return fine;
}

}  // namespace

Status Expr::check_kinds(const std::function<ExprKind(std::string_view name)>& kind_of) const {
  if (code_ == nullptr) return {};
  std::vector<ExprKind> stack;
  for (const ExprStep& step : code_->steps) {
    if (step.op == ExprOp::kName) {
      stack.push_back(kind_of(code_->strings[static_cast<std::size_t>(step.value)]));
    } else if (is_push(step.op)) {
      stack.push_back(step.op == ExprOp::kString ? ExprKind::kString : ExprKind::kNumber);
    } else if (!step_kinds(step, stack)) {
      return wrong(text_, step, kStringAsNumber);
    }
  }
  if (stack.back() == ExprKind::kString) return wrong(text_, code_->steps.back(), "is a string where a number belongs");
  return {};
}

}  // namespace fusediff
