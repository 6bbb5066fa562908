// Do the rules of an operator fit together: names that nothing declares, `=x` circles, roles against dtypes, kinds in
// expressions? It reads structs, not JSON. Whether any legal call exists is in schema_search.h.
#pragma once

#include <string>

#include "model/json_tree.h"
#include "model/schema.h"

namespace fusediff {

// pointer: of the operator's record, for messages. inherited_where: so many entries at the head of `where` came from
// the record that "like" names and have no place in this text.
void check_operator(const Operator& op, const std::string& pointer, std::size_t inherited_where, JsonTrouble& trouble);

// Saved tensors and gradients whose forward operator stands in the same schema: do the names exist there?
void check_references(const Schema& schema, const Operator& op, const std::string& pointer, JsonTrouble& trouble);

// The pointer of where[index], see check_operator().
std::string where_pointer(const std::string& pointer, std::size_t index, std::size_t inherited_where);

// The dtypes that the tensor may have, `=x` followed; empty when x is nobody or a circle.
std::vector<DType> possible_dtypes(const Operator& op, const DTypeRule& rule);

}  // namespace fusediff
