// The sizes of a case before it is bound: dims and attributes by name, so that expressions, shapes and byte totals can
// be asked of a case that is not legal yet. Whether it is legal is bind()'s word, not ours.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/case.h"
#include "model/schema.h"

namespace fusediff {

// A view of a case's dims and attributes that can be changed without touching the case. REQUIRES: op outlives it.
class CaseScope {
 public:
  CaseScope(const Case& c, const Operator& op);

  const Operator& op() const { return *op_; }
  std::vector<std::int64_t>& dims() { return dims_; }  // in the order of op.dims
  const std::vector<std::int64_t>& dims() const { return dims_; }
  std::vector<std::optional<AttrValue>>& attrs() { return attrs_; }  // in the order of op.attrs; empty: absent
  const std::vector<std::optional<AttrValue>>& attrs() const { return attrs_; }
  // Writes dims and attributes back.
  void store(Case& c) const;

  // Nothing where the expression has an error.
  std::optional<std::int64_t> evaluate(const Expr& expr) const;
  // An error counts as false.
  bool holds(const Expr& expr) const;
  // Nothing where a size is negative, in error, or the product is above kMaxElements.
  std::optional<std::vector<std::int64_t>> shape(const std::vector<Expr>& sizes) const;

 private:
  struct Reader {
    const CaseScope* scope;
    int depth;
  };
  static bool read_slot(const void* context, std::uint32_t slot, ExprValue& value);
  bool find(std::string_view name, ExprValue& value, int depth) const;
  bool find_attr(std::size_t at, ExprValue& value, int depth) const;
  std::optional<std::int64_t> evaluate(const Expr& expr, int depth) const;

  const Operator* op_;
  std::vector<std::int64_t> dims_;
  std::vector<std::optional<AttrValue>> attrs_;
};

// The dtype that the case gives a tensor of the operator; the first choice where the case says nothing.
DType dtype_in(const Case& c, const Operator& op, const DTypeRule& rule, std::string_view name);

// What all tensors of the case hold, dense and present ones only.
struct Volume {
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
};
// Nothing where a shape cannot be had.
std::optional<Volume> volume_of(const Case& c, const CaseScope& scope);

}  // namespace fusediff
