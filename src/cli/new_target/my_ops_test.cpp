// A few values that are known, through both paths. For all others there is fusediff.
#include <cstdio>

#include "kit/rig.h"

using namespace fusediff::kit;

static bool gives(const char* path, const std::vector<double>& x, const std::vector<double>& y) {
  const std::vector<int64_t> shape{1, static_cast<int64_t>(x.size())};
  Rig rig("softsign");
  rig.input("x", FUSEDIFF_F32, shape);
  rig.output("y", FUSEDIFF_F32, shape);
  for (size_t i = 0; i < x.size(); ++i) rig.input("x").put_number(static_cast<int64_t>(i), x[i]);
  if (rig.run(*fusediff_target(), path) != FUSEDIFF_OK || !rig.damage().empty()) {
    std::printf("%s: %s%s\n", path, rig.error().c_str(), rig.damage().c_str());
    return false;
  }
  for (size_t i = 0; i < y.size(); ++i) {
    const double got = rig.output("y").number(static_cast<int64_t>(i));
    if (got != y[i]) {
      std::printf("%s: softsign(%g) is %g, not %g\n", path, x[i], got, y[i]);
      return false;
    }
  }
  return true;
}

int main() {
  const std::vector<double> x{0, 1, -1, 3, -7};
  const std::vector<double> y{0, 0.5, -0.5, 0.75, -0.875};
  const bool fused = gives("fused", x, y);
  const bool unfused = gives("unfused", x, y);
  return fused && unfused ? 0 : 1;
}
