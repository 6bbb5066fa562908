// One call made simpler, coarse to fine: outputs apart, dense layouts, sizes, attributes, recipes, single values. The
// call is a case, or one of those within its experiment; whether a candidate will do is the caller's to say.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "model/case.h"
#include "model/schema.h"

namespace fusediff {

struct ShrinkLimits {
  std::uint64_t max_bytes = 0;
  std::function<bool()> time_left;
  std::function<void(const std::string& step)> progress;
};

class CallShrinker {
 public:
  // keeps: is what is looked for still there? A candidate may be illegal. Both, and the operator, outlive this.
  CallShrinker(const Operator& op, const ShrinkLimits& limits, std::function<bool(const Case&)> keeps)
      : op_(op), limits_(limits), keeps_(std::move(keeps)) {}

  // One pass over all steps, each until it finds nothing more. The last call that was kept replaces `call`, in its
  // shortest spelling; false: none was.
  bool shrink(Case& call);
  // Recipes and values only: the sizes and layouts are bound to those of another call.
  bool shrink_values_of(Case& call);

 private:
  bool step(const char* name, bool (CallShrinker::*apply)());
  bool keeps(const Case& candidate);
  bool time_left() const { return limits_.time_left(); }
  bool written_out_steps(bool slices);
  void take_shorter(const Case& before);

  bool simplify_layout();
  bool drop_blocks();
  bool shrink_dims();
  bool default_attributes();
  bool drop_inputs();
  bool simplify_recipes();
  bool drop_slices();
  bool drop_slice(const std::string& dim, std::int64_t first, std::int64_t count);
  bool shrink_values();
  bool shrink_range(const Tensor& tensor, std::size_t first, std::size_t count);
  bool is_integer_input(const std::string& name) const;

  const Operator& op_;
  const ShrinkLimits& limits_;
  std::function<bool(const Case&)> keeps_;
  Case best_;
};

// Sizes to try in place of n, the smallest first: a few small ones, parts of n, one less. None below `least`.
std::vector<std::int64_t> smaller_sizes(std::int64_t n, std::int64_t least);

}  // namespace fusediff
