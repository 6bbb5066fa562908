#include "oracle/memory.h"

#include <string>

namespace fusediff {
namespace {

std::string count(std::int64_t n, const char* noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

std::string describe(const Overrun& overrun) {
  std::string what = "changed " + count(overrun.bytes, "byte");
  if (overrun.gap) {
    return what + " in the gaps of " + overrun.tensor + ", the first at byte " + std::to_string(overrun.distance) +
           " of its memory";
  }
  return what + (overrun.behind ? " behind " : " before ") + overrun.tensor + ", the first " +
         count(overrun.distance, "byte") + (overrun.behind ? " past its end" : " ahead of its start");
}

}  // namespace

std::vector<Evidence> judge_memory(const Call& call, const Execution& execution, Side side) {
  std::vector<Evidence> seen;
  for (const Overrun& overrun : execution.overruns) {
    seen.push_back({FindingClass::kOverrun, "guard", overrun.tensor, {}, side, describe(overrun)});
  }
  for (const ChangedInput& changed : execution.changed_inputs) {
    const std::string& name = call.inputs[static_cast<std::size_t>(changed.input)].name;
    seen.push_back({FindingClass::kInputChanged,
                    "inputs",
                    name,
                    {},
                    side,
                    "changed " + count(changed.elements, "element") + " of its input " + name +
                        ", the first at index " + std::to_string(changed.first)});
  }
  return seen;
}

}  // namespace fusediff
