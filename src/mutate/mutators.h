// The mutators by name, for the table in mutators.cpp and for their tests. Each takes a legal case, changes it and
// returns true, or finds nothing to change, returns false and leaves it; none repairs.
#pragma once

#include "mutate/mutate.h"

namespace fusediff {

// dims.cpp: one dim drawn anew; two moved together; all with typical sizes at once; one to zero where that is tried.
bool change_one_dim(Case& c, MutateContext& context);
bool change_two_dims(Case& c, MutateContext& context);
bool change_to_typical_dims(Case& c, MutateContext& context);
bool change_dim_to_zero(Case& c, MutateContext& context);

// dtypes.cpp: another dtype for one tensor that has a choice.
bool change_dtype(Case& c, MutateContext& context);

// attributes.cpp: one attribute drawn anew; all of them at an end of their range.
bool change_attribute(Case& c, MutateContext& context);
bool change_attributes_to_corners(Case& c, MutateContext& context);

// layout.cpp: place and offset; strides; back to dense; an output onto an input, or off it.
bool change_place(Case& c, MutateContext& context);
bool change_strides(Case& c, MutateContext& context);
bool drop_layout(Case& c, MutateContext& context);
bool change_inplace(Case& c, MutateContext& context);

// fills.cpp: another fill; another seed of the same fill.
bool change_fill(Case& c, MutateContext& context);
bool change_seed(Case& c, MutateContext& context);

// patches.cpp: another fill over a block; one patch less.
bool add_patch(Case& c, MutateContext& context);
bool drop_patch(Case& c, MutateContext& context);

// elements.cpp: one element, or a few; all overrides of an input gone.
bool set_elements(Case& c, MutateContext& context);
bool drop_elements(Case& c, MutateContext& context);

// presence.cpp: an optional input absent or present; an optional output wanted or not.
bool change_presence(Case& c, MutateContext& context);
bool change_unwanted(Case& c, MutateContext& context);

// experiments.cpp: another experiment; one of its parameters drawn anew; a call in it more, less, or changed a little.
bool change_experiment(Case& c, MutateContext& context);
bool change_experiment_parameters(Case& c, MutateContext& context);
bool add_call(Case& c, MutateContext& context);
bool drop_call(Case& c, MutateContext& context);
bool change_call(Case& c, MutateContext& context);

// ties.cpp: equal or nearly equal ranks at the boundary of a decision, after the operator's arithmetic; needs the
// probe. saturation.cpp, without it: different scores that saturate to the same rank; both zeros.
bool make_tie(Case& c, MutateContext& context);
bool saturate_scores(Case& c, MutateContext& context);
bool mix_zeros(Case& c, MutateContext& context);

}  // namespace fusediff
