// EXPECT: class=damage op=adam experiment=pair stage=exp_avg_out
// Weight decay shrinks the parameter, as in AdamW, where mode adam adds it to the gradient: equal at the default, which
// is none. From FlagGems 4988.
#include "builtin/operators.h"
#include "planted/changed_call.h"
#include "planted/planted.h"

namespace fusediff::planted {
namespace {

using namespace kit;

void run(const Call& call) {
  ChangedCall changed(call);
  if (kFaulty && call.real("weight_decay") != 0) {
    changed.text("mode", "adamw");
  }
  changed.run(builtin::kAdam.paths[0].run);
}

}  // namespace

constinit const Operator kFlaggems4988{"adam", PLANTED_LIKE_BUILTIN("adam"), {{"fused", run}}};

}  // namespace fusediff::planted

PLANTED_TARGET("flaggems_4988", fusediff::planted::kFlaggems4988);
