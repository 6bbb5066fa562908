#include "model/schema_search.h"

#include <algorithm>
#include <string>

#include "base/rng.h"
#include "model/call.h"

namespace fusediff {

namespace {

constexpr std::uint64_t kSeed = 0x6c6567616cu;  // any: the answer must only be the same each time
constexpr std::uint64_t kMaxTries = 60000;      // calls looked at, about 50 ms for five rules
constexpr int kStepsPerStart = 40;              // changes before the search starts afresh
constexpr std::uint64_t kFullScan = 1024;       // ranges up to this are tried value by value
constexpr std::uint64_t kSampledScan = 128;     // of wider ones, so many values
constexpr std::uint64_t kRandomMove = 8;        // one change in so many does not look at what it does

// A rule "name == expression" or the reverse: the value that it asks for.
struct Equation {
  std::string name;
  Expr value;
};

// Where the rule's only "==" outside parentheses and strings stands, if no "&&" or "||" does.
std::size_t equals_at(const std::string& text) {
  int depth = 0;
  bool quoted = false;
  std::size_t found = std::string::npos;
  for (std::size_t i = 0; i < text.size(); ++i) {
    quoted = quoted != (text[i] == '\'');
    if (quoted) continue;
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth > 0) continue;
    if (text[i] == '&' || text[i] == '|') return std::string::npos;
    if (text.compare(i, 2, "==") != 0) continue;
    if (found != std::string::npos) return std::string::npos;
    found = i++;
  }
  return found;
}

std::vector<Equation> equations_of(const Expr& rule) {
  const std::size_t at = equals_at(rule.text());
  if (at == std::string::npos) return {};
  const Result<Expr> left = Expr::parse(rule.text().substr(0, at));
  const Result<Expr> right = Expr::parse(rule.text().substr(at + 2));
  std::vector<Equation> equations;
  if (!left.ok() || !right.ok()) return equations;
  const auto is_name = [](const Expr& side) { return side.names().size() == 1 && side.constants().empty(); };
  if (is_name(*left)) equations.push_back({*left->names().begin(), *right});
  if (is_name(*right)) equations.push_back({*right->names().begin(), *left});
  return equations;
}

// What may be changed: a dim, or an attribute that a case states and an expression may use.
struct Variable {
  bool is_dim = true;
  std::size_t at = 0;
};

struct Search {
  const Operator& op;
  Rng rng{kSeed};
  Call call;
  std::vector<AttrValue> stated;  // before derived ones and "if"
  std::vector<Variable> variables;
  std::vector<const Expr*> sizes;
  std::vector<bool> ever_true;
  std::vector<Equation> equations;
  std::vector<std::int64_t> mentioned;  // integers in the rules: often the boundary
  std::uint64_t tried = 0;

  explicit Search(const Operator& the_op) : op(the_op) {
    call.op = &op;
    call.dims.resize(op.dims.size());
    for (std::size_t i = 0; i < op.dims.size(); ++i) variables.push_back({true, i});
    for (std::size_t i = 0; i < op.attrs.size(); ++i) {
      const AttrRule& rule = op.attrs[i];
      call.attrs.push_back({rule.name, std::int64_t{0}});
      stated.push_back(first_value(rule));
      if (!rule.derived && rule.kind != AttrKind::kFloat) variables.push_back({false, i});
    }
    for (const InputRule& rule : op.inputs) add_sizes(rule.shape);
    for (const InputRule& rule : op.given) add_sizes(rule.shape);
    for (const OutputRule& rule : op.outputs) add_sizes(rule.shape);
    ever_true.resize(op.where.size());
    for (const Expr& rule : op.where) {
      for (const std::int64_t value : rule.constants()) mentioned.push_back(value);
      for (Equation& equation : equations_of(rule)) equations.push_back(std::move(equation));
    }
  }

  void add_sizes(const std::vector<Expr>& shape) {
    for (const Expr& size : shape) sizes.push_back(&size);
  }

  static AttrValue first_value(const AttrRule& rule) {
    if (rule.kind == AttrKind::kFloat) return rule.float_low;
    if (rule.kind == AttrKind::kChoice) return rule.choices.front();
    return rule.int_low;
  }

  // A boundary, a typical size, a small one, or any.
  std::int64_t draw_between(std::int64_t low, std::int64_t high, const std::vector<std::int64_t>& typical) {
    const std::uint64_t way = rng.below(8);
    if (way < 3 && !typical.empty()) return rng.pick(typical);
    if (way == 3) return low;
    if (way == 4) return high;
    if (way == 5 && !mentioned.empty()) return std::clamp(rng.pick(mentioned), low, high);
    const bool narrow = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) < 16;
    if (way == 6) return rng.between(low, narrow ? high : low + 16);
    const std::int64_t value = rng.between(low, high);
    const std::int64_t multiple = std::int64_t{1} << rng.below(11);
    return rng.one_in(2) ? std::clamp(value - value % multiple, low, high) : value;
  }

  AttrValue draw_attr(const AttrRule& rule) {
    if (rule.kind == AttrKind::kChoice) return rng.pick(rule.choices);
    if (rule.kind == AttrKind::kBool) return rng.between(0, 1);
    static const std::vector<std::int64_t> kNone;
    return draw_between(rule.int_low, rule.int_high, kNone);
  }

  void draw(const Variable& variable) {
    if (variable.is_dim) {
      const DimRule& rule = op.dims[variable.at];
      call.dims[variable.at] = draw_between(rule.low, rule.high, rule.typical);
    } else {
      stated[variable.at] = draw_attr(op.attrs[variable.at]);
    }
  }

  // Derived attributes and "if" from what is stated; false when one cannot be computed.
  bool settle() {
    for (std::size_t i = 0; i < op.attrs.size(); ++i) {
      call.attrs[i].value = stated[i];
      if (!op.attrs[i].derived) continue;
      const Result<std::int64_t> value = call.evaluate(*op.attrs[i].derived);
      if (!value.ok()) return false;
      call.attrs[i].value = *value;
    }
    for (std::size_t i = 0; i < op.attrs.size(); ++i) {
      if (!op.attrs[i].condition) continue;
      const Result<std::int64_t> holds = call.evaluate(*op.attrs[i].condition);
      if (!holds.ok()) return false;
      if (*holds == 0) call.attrs[i].value = *op.attrs[i].standard;
    }
    return true;
  }

  // The rules and sizes that do not hold: indexes into where, then sizes.
  std::vector<std::size_t> broken() {
    ++tried;
    std::vector<std::size_t> list;
    const bool settled = settle();
    for (std::size_t i = 0; i < op.where.size(); ++i) {
      const Result<std::int64_t> holds = call.evaluate(op.where[i]);
      if (settled && holds.ok() && *holds != 0) {
        ever_true[i] = true;
      } else {
        list.push_back(i);
      }
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Result<std::int64_t> size = call.evaluate(*sizes[i]);
      if (!settled || !size.ok() || *size < 0 || *size > kMaxElements) list.push_back(op.where.size() + i);
    }
    return list;
  }

  // A variable that the rule mentions, directly or through a derived attribute.
  const Variable* variable_of(std::size_t rule) {
    const Expr& expr = rule < op.where.size() ? op.where[rule] : *sizes[rule - op.where.size()];
    std::vector<const Variable*> fitting;
    for (const Variable& variable : variables) {
      const std::string& name = variable.is_dim ? op.dims[variable.at].name : op.attrs[variable.at].name;
      bool fits = expr.names().count(name) > 0;
      for (const AttrRule& attr : op.attrs) {
        fits = fits || (attr.derived && attr.derived->names().count(name) > 0 && expr.names().count(attr.name) > 0);
      }
      if (fits) fitting.push_back(&variable);
    }
    return fitting.empty() ? nullptr : rng.pick(fitting);
  }

  // How many values the variable has, capped.
  std::uint64_t domain(const Variable& variable) const {
    if (!variable.is_dim && op.attrs[variable.at].kind == AttrKind::kChoice)
      return op.attrs[variable.at].choices.size();
    if (!variable.is_dim && op.attrs[variable.at].kind == AttrKind::kBool) return 2;
    const std::int64_t low = variable.is_dim ? op.dims[variable.at].low : op.attrs[variable.at].int_low;
    const std::int64_t high = variable.is_dim ? op.dims[variable.at].high : op.attrs[variable.at].int_high;
    const std::uint64_t width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    return width < kFullScan ? width + 1 : kFullScan + 1;
  }

  void set(const Variable& variable, std::uint64_t index) {
    const auto offset = static_cast<std::int64_t>(index);
    if (variable.is_dim) {
      call.dims[variable.at] = op.dims[variable.at].low + offset;
      return;
    }
    const AttrRule& rule = op.attrs[variable.at];
    if (rule.kind == AttrKind::kChoice) {
      stated[variable.at] = rule.choices[index];
    } else {
      stated[variable.at] = rule.kind == AttrKind::kBool ? offset : rule.int_low + offset;
    }
  }

  // The best value that improve() has seen.
  struct Best {
    std::size_t broken = SIZE_MAX;
    std::uint64_t equals = 0;  // values as good as this
    std::int64_t dim = 0;
    AttrValue attr;
  };

  void weigh(const Variable& variable, Best& best) {
    const std::size_t count = broken().size();
    if (count > best.broken) return;
    best.equals = count < best.broken ? 1 : best.equals + 1;
    best.broken = count;
    if (!rng.one_in(best.equals)) return;
    if (variable.is_dim) {
      best.dim = call.dims[variable.at];
    } else {
      best.attr = stated[variable.at];
    }
  }

  // Values that a rule "name == expression" asks for.
  void weigh_equations(const Variable& variable, Best& best) {
    const std::string& name = variable.is_dim ? op.dims[variable.at].name : op.attrs[variable.at].name;
    const std::int64_t low = variable.is_dim ? op.dims[variable.at].low : op.attrs[variable.at].int_low;
    const std::int64_t high = variable.is_dim ? op.dims[variable.at].high : op.attrs[variable.at].int_high;
    for (const Equation& equation : equations) {
      if (equation.name != name) continue;
      const Result<std::int64_t> value = call.evaluate(equation.value);
      if (!value.ok() || *value < low || *value > high) continue;
      if (variable.is_dim) {
        call.dims[variable.at] = *value;
      } else if (op.attrs[variable.at].kind != AttrKind::kChoice) {
        stated[variable.at] = *value;
      }
      weigh(variable, best);
    }
  }

  // Moves the variable to the value that breaks the fewest rules, one of them at random.
  void improve(const Variable& variable) {
    const std::uint64_t values = domain(variable);
    const bool every = values <= kFullScan;
    Best best;
    for (std::uint64_t i = 0; i < (every ? values : kSampledScan) && tried < kMaxTries; ++i) {
      if (every) {
        set(variable, i);
      } else {
        draw(variable);
      }
      weigh(variable, best);
    }
    weigh_equations(variable, best);
    if (best.broken == SIZE_MAX) return;
    if (variable.is_dim) {
      call.dims[variable.at] = best.dim;
    } else {
      stated[variable.at] = best.attr;
    }
  }

  bool climb() {
    for (const Variable& variable : variables) draw(variable);
    for (int step = 0; step < kStepsPerStart && tried < kMaxTries; ++step) {
      const std::vector<std::size_t> list = broken();
      if (list.empty()) return true;
      const Variable* variable = variable_of(rng.pick(list));
      if (variable == nullptr) return false;  // a rule over constants: no change helps
      if (rng.one_in(kRandomMove)) {
        draw(*variable);
      } else {
        improve(*variable);
      }
    }
    return broken().empty();
  }
};

}  // namespace

LegalSearch find_legal(const Operator& op) {
  Search search(op);
  LegalSearch result;
  while (!result.found && search.tried < kMaxTries) result.found = search.climb();
  result.tried = search.tried;
  if (result.found) {
    result.dims = search.call.dims;
    for (const CallAttr& attr : search.call.attrs) result.attrs.push_back(attr.value);
    return result;
  }
  const auto never = std::find(search.ever_true.begin(), search.ever_true.end(), false);
  if (never != search.ever_true.end()) {
    result.never_true = static_cast<std::size_t>(never - search.ever_true.begin());
  }
  return result;
}

}  // namespace fusediff
