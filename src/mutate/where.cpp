#include "mutate/where.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "model/call.h"
#include "mutate/sizes.h"

namespace fusediff {
namespace {

constexpr int kRounds = 256;
constexpr int kRoundsBeforeRestart = 16;

// A dim or an attribute that a rule can be met with.
struct Variable {
  bool is_dim = true;
  std::size_t at = 0;
  bool operator==(const Variable&) const = default;
};

void add_variables(const CaseScope& scope, const Expr& expr, std::vector<Variable>& variables) {
  const Operator& op = scope.op();
  const auto add = [&](Variable variable) {
    if (std::find(variables.begin(), variables.end(), variable) == variables.end()) variables.push_back(variable);
  };
  for (const std::string& name : expr.names()) {
    for (std::size_t i = 0; i < op.dims.size(); ++i) {
      if (op.dims[i].name == name) add({true, i});
    }
    for (std::size_t i = 0; i < op.attrs.size(); ++i) {
      const AttrRule& rule = op.attrs[i];
      if (rule.name != name) continue;
      // The loader has refused attributes that follow themselves.
      if (rule.derived) {
        add_variables(scope, *rule.derived, variables);
      } else if (rule.kind != AttrKind::kFloat) {
        add({false, i});
      }
      if (!rule.derived && rule.condition) add_variables(scope, *rule.condition, variables);
    }
  }
}

std::size_t broken_rules(const CaseScope& scope) {
  const std::vector<Expr>& where = scope.op().where;
  return static_cast<std::size_t>(
      std::count_if(where.begin(), where.end(), [&](const Expr& expr) { return !scope.holds(expr); }));
}

// Numbers that sizes of the rule may want to be equal to, a multiple of or a divisor of.
std::vector<std::int64_t> related_numbers(const CaseScope& scope, const Expr& rule,
                                          const std::vector<Variable>& variables, const Variable& self) {
  std::vector<std::int64_t> numbers = rule.constants();
  for (const Variable& other : variables) {
    if (other == self) continue;
    if (other.is_dim) {
      numbers.push_back(scope.dims()[other.at]);
    } else if (const auto& held = scope.attrs()[other.at]) {
      if (const auto* integer = std::get_if<std::int64_t>(&*held)) numbers.push_back(*integer);
    }
  }
  std::erase_if(numbers, [](std::int64_t number) { return number < 0 || number > kMaxElements; });
  const std::size_t plain = numbers.size();
  for (std::size_t i = 0; i < plain; ++i) {
    for (std::size_t j = 0; j < plain; ++j) {
      if (numbers[j] > 1 && i != j) {
        numbers.push_back(numbers[i] / numbers[j]);
        if (i < j) numbers.push_back(numbers[i] * numbers[j]);
      }
    }
  }
  return numbers;
}

// Values to try, the nearest to `now` first.
std::vector<std::int64_t> integer_candidates(std::int64_t now, std::int64_t low, std::int64_t high,
                                             const std::vector<std::int64_t>& typical,
                                             const std::vector<std::int64_t>& numbers) {
  std::vector<std::int64_t> values = {low, high, 1, now / 2, now * 2};
  for (std::int64_t step = 1; step <= 8; ++step) {
    values.push_back(now - step);
    values.push_back(now + step);
  }
  values.insert(values.end(), typical.begin(), typical.end());
  for (const std::int64_t number : numbers) {
    for (std::int64_t near = -1; near <= 1; ++near) values.push_back(number + near);
    if (number <= 0) continue;
    values.push_back(now / number * number);
    values.push_back((now / number + 1) * number);
    for (std::int64_t part = 2; part <= 8; ++part) values.push_back(number / part);
  }
  std::erase_if(values, [&](std::int64_t value) { return value == now || value < low || value > high; });
  std::sort(values.begin(), values.end(), [now](std::int64_t a, std::int64_t b) {
    const std::int64_t to_a = std::abs(a - now), to_b = std::abs(b - now);
    return to_a != to_b ? to_a < to_b : a < b;
  });
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// One changed value; a dim's or an attribute's.
class Change {
 public:
  Change(CaseScope& scope, Variable variable) : scope_(scope), variable_(variable) {
    if (variable.is_dim) {
      old_ = scope.dims()[variable.at];
    } else if (scope.attrs()[variable.at]) {
      old_ = *scope.attrs()[variable.at];
      present_ = true;
    }
  }
  void set(const AttrValue& value) {
    if (variable_.is_dim) {
      scope_.dims()[variable_.at] = std::get<std::int64_t>(value);
    } else {
      scope_.attrs()[variable_.at] = value;
    }
  }
  void undo() {
    if (variable_.is_dim || present_) {
      set(old_);
    } else {
      scope_.attrs()[variable_.at].reset();
    }
  }

 private:
  CaseScope& scope_;
  Variable variable_;
  AttrValue old_;
  bool present_ = false;
};

std::vector<AttrValue> candidates(const CaseScope& scope, const Expr& rule, const std::vector<Variable>& variables,
                                  const Variable& self) {
  std::vector<AttrValue> values;
  if (self.is_dim) {
    const DimRule& dim = scope.op().dims[self.at];
    const std::int64_t now = scope.dims()[self.at];
    for (const std::int64_t value : integer_candidates(now, dim.low, std::max(dim.high, now), dim.typical,
                                                       related_numbers(scope, rule, variables, self))) {
      values.emplace_back(value);
    }
    return values;
  }
  const AttrRule& attr = scope.op().attrs[self.at];
  if (attr.kind == AttrKind::kChoice) {
    values.assign(attr.choices.begin(), attr.choices.end());
  } else if (attr.kind == AttrKind::kBool) {
    values = {AttrValue(std::int64_t{0}), AttrValue(std::int64_t{1})};
  } else {
    const std::optional<AttrValue>& held = scope.attrs()[self.at] ? scope.attrs()[self.at] : attr.standard;
    const std::int64_t now = held && held->index() == 0 ? std::get<std::int64_t>(*held) : attr.int_low;
    for (const std::int64_t value :
         integer_candidates(now, attr.int_low, attr.int_high, {}, related_numbers(scope, rule, variables, self))) {
      values.emplace_back(value);
    }
    values.insert(values.end(), attr.also.begin(), attr.also.end());
  }
  return values;
}

// The nearest value of this variable with which the rule holds and fewer rules than `broken` are broken.
std::optional<AttrValue> better_value(CaseScope& scope, const Expr& rule, const std::vector<Variable>& variables,
                                      const Variable& self, std::size_t broken) {
  std::optional<AttrValue> best;
  Change change(scope, self);
  for (const AttrValue& value : candidates(scope, rule, variables, self)) {
    change.set(value);
    if (!scope.holds(rule)) continue;
    const std::size_t then = broken_rules(scope);
    if (then >= broken) continue;
    best = value;
    broken = then;
    if (then == 0) break;
  }
  change.undo();
  return best;
}

void wander(CaseScope& scope, const Expr& rule, const std::vector<Variable>& variables, Rng& rng) {
  const Variable& variable = rng.pick(variables);
  const std::vector<AttrValue> values = candidates(scope, rule, variables, variable);
  Change change(scope, variable);
  if (variable.is_dim && rng.one_in(3)) {
    change.set(draw_dim(scope.op().dims[variable.at], rng));
  } else if (!values.empty()) {
    change.set(rng.pick(values));
  }
}

}  // namespace

bool where_holds(const CaseScope& scope) {
  const std::vector<Expr>& where = scope.op().where;
  return std::all_of(where.begin(), where.end(), [&](const Expr& expr) { return scope.holds(expr); });
}

bool meet_where(CaseScope& scope, Rng& rng) {
  if (where_holds(scope)) return true;
  const CaseScope start = scope;
  for (int round = 0; round < kRounds; ++round) {
    if (round % kRoundsBeforeRestart == kRoundsBeforeRestart - 1) scope = start;
    std::vector<const Expr*> broken;
    for (const Expr& expr : scope.op().where) {
      if (!scope.holds(expr)) broken.push_back(&expr);
    }
    if (broken.empty()) return true;
    const Expr& rule = *rng.pick(broken);
    std::vector<Variable> variables;
    add_variables(scope, rule, variables);
    if (variables.empty()) break;
    for (std::size_t i = variables.size(); i > 1; --i) std::swap(variables[i - 1], variables[rng.below(i)]);
    bool better = false;
    for (const Variable& variable : variables) {
      const std::optional<AttrValue> value = better_value(scope, rule, variables, variable, broken.size());
      if (!value) continue;
      Change(scope, variable).set(*value);
      better = true;
      break;
    }
    if (!better) wander(scope, rule, variables, rng);
  }
  scope = start;
  return false;
}

}  // namespace fusediff
