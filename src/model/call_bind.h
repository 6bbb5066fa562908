// The parts of bind(): each fills what it names in the call, or says with a JSON pointer into the case what is wrong.
// For call*.cpp only. Their order is that of bind().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/call.h"
#include "model/quote.h"

namespace fusediff {

// dims, attrs, notes.
Status bind_dims(const Case& c, Call& call);
Status bind_attrs(const Case& c, Call& call);
// inputs, givens, outputs: names, shapes, dtypes, presence, alignment; dense.
Status bind_tensors(const Case& c, Call& call);
// strides, offset, place, on.
Status bind_layout(const Case& c, Call& call);

// "E = 5, G = 2" of the names in the expression, for an error.
std::string values_of(const Call& call, const Expr& expr);

// "/section/name/below: what". The name may be any text of a case.
inline Error at_name(std::string_view section, std::string_view name, std::string_view what,
                     std::string_view below = "") {
  std::string text = "/" + std::string(section) + "/" + pointer_part(name) + std::string(below) + ": ";
  return user_error(text.append(what));
}

template <typename List>
std::vector<std::string> names_in(const List& list) {
  std::vector<std::string> names;
  for (const auto& item : list) names.push_back(item.name);
  return names;
}

}  // namespace fusediff
