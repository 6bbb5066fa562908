// The cases of the reports A and B, by `fusediff check` on both editions of the emulation: each is found in the faulty
// one as the report says, and nothing in the correct one.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace fusediff::aclnn {
namespace {

using nlohmann::json;

json verdict_of(const std::string& file, const std::string& edition) {
  const std::string bin = FUSEDIFF_BIN_DIR;
  const std::string command = bin + "/fusediff check --format json --target " + bin + "/targets/aclnn.so" +
                              " --target-option library_path=" + bin + "/targets/aclnn_emulation/" + edition + " " +
                              FUSEDIFF_SOURCE_DIR + "/" + file;
  std::string line;
  std::array<char, 4096> part{};
  FILE* const out = popen(command.c_str(), "r");
  while (out != nullptr && std::fgets(part.data(), part.size(), out) != nullptr) {
    line += part.data();
  }
  if (out != nullptr) {
    pclose(out);
  }
  const json read = json::parse(line, nullptr, false);
  return read.is_object() ? read.at("verdict") : json{{"verdict", "none"}, {"line", line}};
}

struct Report {
  const char* file;
  const char* class_name;
  const char* output;  // "": none
};

constexpr Report kReports[] = {
    {"corpus/moe_gating_topk/report_a.json", "flip", "expert_idx"},
    {"src/targets/planted/cases/report_b1.json", "gradient", "grad_bias"},
    {"corpus/mhc_pre_sinkhorn_grad/report_b2.json", "unwritten", "grad_bias"},
    {"src/targets/aclnn/cases/report_b3.json", "contamination", "grad_bias"},
    {"corpus/mhc_pre_sinkhorn_grad/report_b4_streams.json", "undeclared_limit", ""},
    {"corpus/mhc_pre_sinkhorn_grad/report_b4_iterations.json", "undeclared_limit", ""},
    {"corpus/mhc_pre_sinkhorn_grad/report_b4_channels.json", "undeclared_limit", ""},
};

TEST(AclnnReportsTest, EachIsFoundInTheFaultyEdition) {
  for (const Report& one : kReports) {
    const json verdict = verdict_of(one.file, "faulty");
    ASSERT_EQ(verdict.at("verdict"), "finding") << one.file << ": " << verdict;
    EXPECT_EQ(verdict.at("finding").at("class"), one.class_name) << one.file << ": " << verdict;
    EXPECT_EQ(verdict.at("finding").at("output"), one.output) << one.file << ": " << verdict;
  }
}

TEST(AclnnReportsTest, TheOwnersOfReportAHearStageAndSlot) {
  const json finding = verdict_of("corpus/moe_gating_topk/report_a.json", "faulty").at("finding");
  EXPECT_EQ(finding.at("stage_outputs"), json::array({"norm_out"}));
  const json& flip = finding.at("flips").at(0);
  EXPECT_EQ(flip.at("slot"), 9);
  EXPECT_EQ(flip.at("picked"), json::array({472, 122}));
  EXPECT_NEAR(flip.at("sums").at(0).at("sum").at(0).get<double>(), 9.8369836807, 1e-9);
  EXPECT_NEAR(flip.at("sums").at(0).at("sum").at(1).get<double>(), 9.9122762680, 1e-9);
}

TEST(AclnnReportsTest, TheLimitsAreToldInTheLibrarysWords) {
  const json verdict = verdict_of("corpus/mhc_pre_sinkhorn_grad/report_b4_streams.json", "faulty");
  EXPECT_NE(verdict.dump().find("returned 161002: aclnnMhcPreSinkhornBackward: only N = 4 is supported, not 3"),
            std::string::npos)
      << verdict;
}

TEST(AclnnReportsTest, NothingIsFoundInTheCorrectEdition) {
  for (const Report& one : kReports) {
    const json verdict = verdict_of(one.file, "correct");
    EXPECT_TRUE(verdict.at("verdict") == "pass" || verdict.at("verdict") == "vacuous") << one.file << ": " << verdict;
  }
}

}  // namespace
}  // namespace fusediff::aclnn
