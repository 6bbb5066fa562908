#include "model/finding.h"

#include <cctype>

namespace fusediff {
namespace {

constexpr std::array<std::string_view, kFindingClassCount> kClassNames = {"hang",
                                                                          "memory",
                                                                          "overrun",
                                                                          "overread",
                                                                          "crash",
                                                                          "unwritten",
                                                                          "dirty",
                                                                          "input_changed",
                                                                          "nondeterminism",
                                                                          "contamination",
                                                                          "undeclared_limit",
                                                                          "accepted_illegal",
                                                                          "invariant",
                                                                          "gradient",
                                                                          "non_finite",
                                                                          "flip",
                                                                          "wrong_pick",
                                                                          "damage",
                                                                          "rounding",
                                                                          "zero_sign",
                                                                          "nan_bits"};

// What one run of one path does by itself, whatever it is laid beside.
bool is_of_one_run(FindingClass cls) {
  return cls <= FindingClass::kInputChanged || cls == FindingClass::kUndeclaredLimit ||
         cls == FindingClass::kAcceptedIllegal || cls == FindingClass::kInvariant;
}

std::array<std::string, 2> paths_of(const Finding& finding) {
  const bool is_target = !finding.evidence.empty() && finding.evidence[0].accused == Side::kTarget;
  if (!is_of_one_run(finding.cls) || !is_target) return finding.paths;
  return {finding.paths[0], finding.paths[0]};
}

std::string safe_for_files(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
  return safe;
}

}  // namespace

std::string_view name_of(FindingClass cls) { return kClassNames[static_cast<std::size_t>(cls)]; }

std::optional<FindingClass> finding_class_named(std::string_view name) {
  for (std::size_t i = 0; i < kClassNames.size(); ++i) {
    if (kClassNames[i] == name) return static_cast<FindingClass>(i);
  }
  return std::nullopt;
}

std::string signature_of(const Finding& finding) {
  const std::array<std::string, 2> paths = paths_of(finding);
  std::string text = finding.oracle;
  if (!finding.relation.empty()) text += ":" + finding.relation;
  text += " " + finding.op + " " + paths[0] + "/" + paths[1];
  text += " " + (finding.dtype.empty() ? "-" : finding.dtype);
  text += " " + (finding.output.empty() ? "-" : finding.output);
  text += " " + std::string(name_of(finding.cls));
  text += " " + (finding.stage ? "stage " + std::to_string(*finding.stage) : std::string("-"));
  return text;
}

std::string slug_of(const Finding& finding) {
  std::string slug = safe_for_files(finding.op) + "-" + std::string(name_of(finding.cls));
  if (!finding.output.empty()) slug += "-" + safe_for_files(finding.output);
  if (!finding.dtype.empty()) slug += "-" + safe_for_files(finding.dtype);
  return slug.substr(0, 120) + "-" + hash128(signature_of(finding)).hex().substr(0, 8);
}

std::string_view name_of(Verdict::Kind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"pass", "finding", "skip", "vacuous", "harness_error"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace fusediff
