// The target on the library that FUSEDIFF_ONNXRUNTIME names; skipped where it names none.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kit/rig.h"
#include "onnxruntime/context.h"
#include "onnxruntime/graphs.h"

namespace fusediff::onnxruntime {
namespace {

using kit::Rig;
using kit::RigTensor;

class OnnxRuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* named = std::getenv("FUSEDIFF_ONNXRUNTIME");
    if (named == nullptr || *named == '\0') GTEST_SKIP() << "FUSEDIFF_ONNXRUNTIME names no libonnxruntime";
  }
};

// A call of the record with these dims and ordinary values, f32 or f64.
Rig call_of(const nlohmann::json& record, const std::map<std::string, int64_t>& dims, int32_t dtype) {
  Rig rig(record.at("name"));
  std::mt19937_64 random(5);
  for (const char* side : {"inputs", "outputs"}) {
    for (const auto& tensor : record.at(side)) {
      std::vector<int64_t> shape;
      for (const std::string size : tensor.at("shape")) shape.push_back(dims.at(size));
      if (side == std::string("outputs")) {
        rig.output(tensor.at("name"), dtype, shape);
        continue;
      }
      RigTensor& made = rig.input(tensor.at("name"), dtype, shape);
      for (int64_t i = 0; i < made.count(); ++i) {
        made.put_number(i, static_cast<double>(static_cast<int64_t>(random() % 4001) - 2000) / 1024);
      }
    }
  }
  return rig;
}

nlohmann::json records() { return nlohmann::json::parse(fusediff_target()->schema()).at("operators"); }

const std::map<std::string, int64_t> kDims{{"R", 5}, {"C", 67}, {"B", 2}, {"S", 3}, {"M", 5}, {"K", 33}, {"N", 19}};

TEST_F(OnnxRuntimeTest, EveryPathIsCloseToTheFormula) {
  for (const auto& record : records()) {
    Rig truth = call_of(record, kDims, FUSEDIFF_F64);
    ASSERT_EQ(truth.run(*fusediff_target(), "reference"), FUSEDIFF_OK) << truth.error();
    for (const char* path : {"fused", "unfused"}) {
      Rig rig = call_of(record, kDims, FUSEDIFF_F32);
      ASSERT_EQ(rig.run(*fusediff_target(), path), FUSEDIFF_OK) << record.at("name") << ": " << rig.error();
      EXPECT_EQ(rig.damage(), "");
      for (size_t o = 0; o < rig.outputs().size(); ++o) {
        for (int64_t i = 0; i < rig.outputs()[o].count(); ++i) {
          const double right = truth.outputs()[o].number(i);
          ASSERT_NEAR(rig.outputs()[o].number(i), right, 1e-5 * (1 + std::fabs(right))) << record.at("name") << path;
        }
      }
    }
  }
}

TEST_F(OnnxRuntimeTest, EmptyTensorsAreTaken) {
  for (const auto& record : records()) {
    const std::map<std::string, int64_t> empty{{"R", 0}, {"C", 4}, {"B", 0}, {"S", 3}, {"M", 0}, {"K", 2}, {"N", 3}};
    for (const char* path : {"fused", "unfused"}) {
      Rig rig = call_of(record, empty, FUSEDIFF_F32);
      EXPECT_EQ(rig.run(*fusediff_target(), path), FUSEDIFF_OK) << record.at("name") << ": " << rig.error();
    }
  }
}

TEST_F(OnnxRuntimeTest, OtherTypesAreNotOffered) {
  Rig rig = call_of(records().at(0), kDims, FUSEDIFF_F64);
  EXPECT_EQ(rig.run(*fusediff_target(), "fused"), FUSEDIFF_UNSUPPORTED);
  EXPECT_EQ(rig.error(), "x is not f32");
}

// The graph that the library made of the model at a level, as text that holds the names of its nodes.
std::string optimised(const std::string& model, int level) {
  const std::string file = testing::TempDir() + "fusediff_onnxruntime_" + std::to_string(::getpid()) + ".onnx";
  const Library& library = Library::load("");
  library.api().release_session(make_session(library, model, level, 1, file));
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  std::filesystem::remove(file);
  return bytes;
}

TEST_F(OnnxRuntimeTest, TheFusedGraphsAreFused) {
  const struct {
    const std::string& model;
    const char* node;
  } fused[] = {{gelu_model(), "Gelu"},
               {bias_gelu_model(), "BiasGelu"},
               {layer_norm_model(), "LayerNormalization"},
               {skip_layer_norm_model(), "SkipLayerNormalization"},
               {matmul_add_model(), "Gemm"},
               {silu_model(), "QuickGelu"}};
  for (const auto& one : fused) {
    EXPECT_NE(optimised(one.model, kLevelAll).find(one.node), std::string::npos) << one.node;
    EXPECT_EQ(optimised(one.model, kLevelOff).find(one.node), std::string::npos) << one.node;
  }
}

TEST_F(OnnxRuntimeTest, ThreadsShareAContext) {
  Context context("");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&context, t] {
      const int64_t shape[] = {1, 3 + t};
      const int64_t stride[] = {3 + t, 1};
      std::vector<float> x(static_cast<size_t>(3 + t), static_cast<float>(t));
      std::vector<float> y(x.size());
      const fusediff_tensor in{"x", shape, stride, x.data(), 2, FUSEDIFF_F32};
      const fusediff_tensor out{"y", shape, stride, y.data(), 2, FUSEDIFF_F32};
      fusediff_call call{};
      call.struct_size = sizeof(call);
      call.inputs = &in;
      call.input_count = 1;
      call.outputs = &out;
      call.output_count = 1;
      for (int round = 0; round < 20; ++round) {
        context.run(call, silu_model(), round % 2 == 0, {"x"}, "y");
        for (const float one : y) ASSERT_NEAR(one, x[0] / (1 + std::exp(-x[0])), 1e-5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace fusediff::onnxruntime
