// Is there a legal call? A seeded local search over the tried ranges of dims and attributes: it can find one, it cannot
// prove that there is none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/schema.h"

namespace fusediff {

struct LegalSearch {
  bool found = false;
  std::vector<std::int64_t> dims;  // found: in the order of op.dims
  std::vector<AttrValue> attrs;    // found: in the order of op.attrs
  // Not found: the rule of `where` that held in no call that was tried, if there is one.
  std::optional<std::size_t> never_true;
  std::uint64_t tried = 0;  // calls looked at
};

// Values from the tried ranges for which all of `where` holds and every size is a size. The same operator gives the
// same answer. REQUIRES: the operator passed check_operator().
LegalSearch find_legal(const Operator& op);

}  // namespace fusediff
