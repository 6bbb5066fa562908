#include "import/dims.h"

#include <algorithm>

#include "model/quote.h"

namespace fusediff {
namespace {

constexpr std::int64_t kMostTried = 1 << 20;  // sizes that an expression in one unknown is searched for

struct Known {
  std::int64_t value = 0;
  std::string where;
};
using KnownDims = std::map<std::string, Known>;

Result<std::int64_t> evaluate(const Expr& expr, const KnownDims& known, const std::string& trial,
                              std::int64_t trial_value) {
  return expr.evaluate([&](std::string_view name, ExprValue& value) {
    if (name == trial) {
      value = trial_value;
      return true;
    }
    const auto at = known.find(std::string(name));
    if (at == known.end()) return false;
    value = at->second.value;
    return true;
  });
}

std::vector<std::string> unknown_names(const Expr& expr, const KnownDims& known) {
  std::vector<std::string> names;
  for (const std::string& name : expr.names()) {
    if (!known.contains(name)) names.push_back(name);
  }
  return names;
}

Status check(const SizeClaim& claim, const KnownDims& known) {
  const Result<std::int64_t> value = evaluate(claim.expr, known, "", 0);
  if (value.ok() && *value == claim.value) return {};
  std::string why;
  for (const std::string& name : claim.expr.names()) {
    const auto at = known.find(name);
    if (at == known.end()) continue;
    why += (why.empty() ? "" : ", ") + name + " = " + std::to_string(at->second.value) + " by " + at->second.where;
  }
  return user_error(claim.where + " is " + std::to_string(claim.value) + ", " + quote(claim.expr.text()) +
                    (value.ok() ? " is " + std::to_string(*value) : " has no value") +
                    (why.empty() ? "" : " (" + why + ")"));
}

// The least size that gives the claim its value.
Status search(const SizeClaim& claim, const std::string& name, KnownDims& known) {
  const std::int64_t most = std::min(kMostTried, std::max<std::int64_t>(claim.value, 0) + 4096);
  for (std::int64_t size = 0; size <= most; ++size) {
    const Result<std::int64_t> value = evaluate(claim.expr, known, name, size);
    if (!value.ok() || *value != claim.value) continue;
    known[name] = {size, claim.where};
    return {};
  }
  return user_error(claim.where + " is " + std::to_string(claim.value) + ": no " + name + " makes " +
                    quote(claim.expr.text()) + " that");
}

std::int64_t first_choice(const DimRule& rule) {
  return rule.typical.empty() ? std::max<std::int64_t>(rule.low, 1) : rule.typical.front();
}

}  // namespace

Result<SolvedDims> solve_dims(const Operator& op, const std::vector<SizeClaim>& claims) {
  KnownDims known;
  for (const SizeClaim& claim : claims) {
    const std::string& name = claim.expr.text();
    if (op.dim(name) == nullptr) continue;
    known.try_emplace(name, Known{claim.value, claim.where});
  }
  // An expression may become one in a single unknown when another is solved.
  for (bool moved = true; moved;) {
    moved = false;
    for (const SizeClaim& claim : claims) {
      const std::vector<std::string> open = unknown_names(claim.expr, known);
      if (open.size() != 1 || op.dim(open.front()) == nullptr) continue;
      if (Status found = search(claim, open.front(), known); !found.ok()) return found.error();
      moved = true;
    }
  }
  SolvedDims solved;
  for (const DimRule& rule : op.dims) {
    const auto [at, added] = known.try_emplace(rule.name, Known{first_choice(rule), "nothing else"});
    solved.dims[rule.name] = at->second.value;
    if (added) {
      solved.notes.push_back(rule.name + " = " + std::to_string(at->second.value) + ": nothing states it; --dim " +
                             rule.name + "=NUMBER does");
    }
  }
  for (const SizeClaim& claim : claims) {
    if (Status fits = check(claim, known); !fits.ok()) return fits.error();
  }
  return solved;
}

std::optional<std::vector<std::int64_t>> with_rank(const std::vector<std::int64_t>& shape, std::size_t rank) {
  std::vector<std::int64_t> fitted = shape;
  while (fitted.size() < rank) fitted.insert(fitted.begin(), 1);
  while (fitted.size() > rank && fitted.size() > 1) {
    fitted[1] *= fitted[0];
    fitted.erase(fitted.begin());
  }
  if (fitted.size() > rank) {
    if (fitted.front() != 1) return std::nullopt;
    fitted.clear();
  }
  return fitted;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

}  // namespace fusediff
