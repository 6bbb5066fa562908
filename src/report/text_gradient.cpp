#include "report/text_gradient.h"

#include <cmath>
#include <cstdio>

#include "model/number_text.h"
#include "report/wrapped.h"

namespace fusediff {
namespace {

std::string signed6(double value) {
  char text[32];
  const double size = std::abs(value);
  const char* const format = size == 0 || (size >= 1e-4 && size < 1e6) ? "%+.6f" : "%+.6e";
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string known_to(double error) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", error);
  return text;
}

// A sign that the error of the quotient leaves no doubt of.
bool opposite(double gradient, const GradientSweep& s) {
  return gradient * s.quotient < 0 && std::abs(s.quotient) > s.quotient_error;
}

std::string given(const std::string& who, const std::optional<double>& value, const GradientSweep& s) {
  if (!value) return "";
  return ", " + who + " " + signed6(*value) + (opposite(*value, s) ? " (opposite sign)" : "");
}

std::string sweep_text(const GradientSweep& s, const Finding& f) {
  const bool same_names = f.paths[0] == f.paths[1];
  const std::array<std::string, 2>& names = same_names ? f.targets : f.paths;
  const std::string place = s.index < 0 ? " along a seeded direction" : "[" + std::to_string(s.index) + "]";
  std::string text =
      wrapped("derivative at " + s.output + place + ": " + signed6(s.quotient) +
                  " by central difference in f64 (error at most " + known_to(s.quotient_error) + ")" +
                  given("f64 backward", s.truth, s) + given(names[0], s.path[0], s) + given(names[1], s.path[1], s),
              2);
  if (s.own.empty()) return text;
  std::string settles = "through the forward of " + f.targets[0] + ":" + f.paths[0] + ":";
  for (std::size_t i = 0; i < s.own.size(); ++i) {
    settles += std::string(i == 0 ? " eps " : ", ") + short_decimal(s.own[i][0]) + " " + signed6(s.own[i][1]);
  }
  return text + wrapped(settles, 4);
}

}  // namespace

std::string gradient_text(const Finding& f) {
  std::string text;
  for (const GradientSweep& s : f.sweeps) text += sweep_text(s, f);
  return text;
}

}  // namespace fusediff
