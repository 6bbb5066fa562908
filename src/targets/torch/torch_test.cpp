#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "kit/rig.h"
#include "torch/operators.h"

namespace fusediff::torch {
namespace {

using namespace kit;

// Fills the inputs with ordinary numbers in layouts of every kind.
void draw(Rig& rig, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (RigTensor& in : rig.inputs()) {
    random_layout(in, random, true);
    std::normal_distribution<double> normal(0, 1);
    for (int64_t i = 0; i < in.count() && in.dtype <= FUSEDIFF_F8E5M2; ++i) {
      in.put_number(i, normal(random));
    }
  }
  for (RigTensor& out : rig.outputs()) {
    random_layout(out, random, false);
  }
}

std::vector<double> numbers(Rig& rig) {
  std::vector<double> all;
  for (RigTensor& out : rig.outputs()) {
    for (int64_t i = 0; i < out.count(); ++i) {
      all.push_back(out.number(i));
    }
  }
  return all;
}

// Every path of the operator gives what `against` gives, within a share of the largest number.
void expect_agreement(Rig& rig, const std::vector<std::string>& paths, double within) {
  std::vector<double> first;
  for (const std::string& path : paths) {
    ASSERT_EQ(rig.run(*fusediff_target(), path), FUSEDIFF_OK) << path << ": " << rig.error();
    EXPECT_EQ(rig.damage(), "") << path;
    const std::vector<double> here = numbers(rig);
    if (first.empty()) {
      first = here;
      EXPECT_FALSE(first.empty());
    }
    double scale = 0;
    for (const double value : first) {
      scale = std::max(scale, std::abs(value));
    }
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_NEAR(here[i], first[i], within * scale) << path << " at " << i;
    }
  }
}

const std::vector<std::string> kAll = {"fused", "unfused", "reference"};
const std::vector<std::string> kOwn = {"fused", "unfused"};

struct Format {
  int32_t dtype;
  double within;
};
constexpr Format kF32{FUSEDIFF_F32, 1e-5};
constexpr Format kF16{FUSEDIFF_F16, 4e-3};
constexpr Format kBf16{FUSEDIFF_BF16, 3e-2};
constexpr Format kF64{FUSEDIFF_F64, 1e-13};

TEST(TorchTest, RecordsNameWhatIsRegistered) {
  const nlohmann::json schema = nlohmann::json::parse(fusediff_target()->schema());
  size_t count = 0;
  for (const auto& op : schema.at("operators")) {
    const std::string name = op.at("name");
    fusediff_call call{};
    call.struct_size = sizeof(call);
    call.op = name.c_str();
    for (const std::string path : op.at("paths")) {
      call.path = path.c_str();
      EXPECT_EQ(fusediff_target()->run(nullptr, &call), FUSEDIFF_REJECTED) << name << ":" << path;
    }
    ++count;
  }
  EXPECT_EQ(count, detail::registry().operators.size());
}

TEST(TorchTest, ElementwisePathsAgree) {
  for (const Format f : {kF32, kBf16, kF64}) {
    Rig sigmoid("sigmoid");
    sigmoid.input("x", f.dtype, {5, 37});
    sigmoid.output("y", f.dtype, {5, 37});
    draw(sigmoid, 1);
    expect_agreement(sigmoid, kAll, f.within);
  }
  for (const Format f : {kF32, kF16, kBf16, kF64}) {
    Rig add("add");
    add.input("a", f.dtype, {5, 37});
    add.input("b", f.dtype, {5, 37});
    add.output("y", f.dtype, {5, 37});
    draw(add, 2);
    expect_agreement(add, kAll, f.within);
    for (const char* compute : {"f32", "storage"}) {
      Rig swiglu("swiglu");
      swiglu.input("x", f.dtype, {3, 22});
      swiglu.input("gate", f.dtype, {3, 11}).absent = true;
      swiglu.input("up", f.dtype, {3, 11}).absent = true;
      swiglu.output("silu", f.dtype, {3, 11});
      swiglu.output("y", f.dtype, {3, 11});
      swiglu.integer("packed", 1);
      swiglu.text("compute", compute);
      draw(swiglu, 3);
      expect_agreement(swiglu, kAll, f.within);
    }
  }
}

TEST(TorchTest, NormsAgree) {
  for (const Format f : {kF32, kBf16}) {
    Rig softmax("softmax");
    softmax.input("x", f.dtype, {4, 19});
    softmax.output("max", f.dtype, {4});
    softmax.output("sum", FUSEDIFF_F32, {4});
    softmax.output("y", f.dtype, {4, 19});
    draw(softmax, 4);
    expect_agreement(softmax, kAll, f.within);
  }
  Rig norm("layer_norm");
  norm.input("x", FUSEDIFF_F32, {4, 19});
  norm.input("gamma", FUSEDIFF_F32, {19});
  norm.input("beta", FUSEDIFF_F32, {19});
  norm.output("mean", FUSEDIFF_F32, {4});
  norm.output("rstd", FUSEDIFF_F32, {4});
  norm.output("y", FUSEDIFF_F32, {4, 19});
  norm.real("eps", 1e-5);
  draw(norm, 5);
  expect_agreement(norm, kAll, kF32.within);
  for (const Format f : {kF32, kF16, kBf16}) {
    Rig rms("rms_norm");
    rms.input("x", f.dtype, {4, 19});
    rms.input("residual", f.dtype, {4, 19});
    rms.input("gamma", f.dtype, {19});
    rms.output("residual_out", f.dtype, {4, 19});
    rms.output("rstd", FUSEDIFF_F32, {4});
    rms.output("y", f.dtype, {4, 19});
    rms.integer("add_residual", 1);
    rms.real("eps", 1e-6);
    draw(rms, 6);
    expect_agreement(rms, kAll, f.within);
  }
}

Rig cross_entropy_rig(double smoothing, int64_t label) {
  Rig rig("cross_entropy");
  rig.input("logits", FUSEDIFF_F32, {3, 10});
  rig.input("target", FUSEDIFF_I64, {3});
  rig.output("lse", FUSEDIFF_F32, {3});
  rig.output("terms", FUSEDIFF_F32, {3, 4});
  rig.output("loss", FUSEDIFF_F32, {3});
  rig.real("label_smoothing", smoothing);
  draw(rig, 7);
  rig.input("target").put_number(0, 9);
  rig.input("target").put_number(1, -100);
  rig.input("target").put_number(2, static_cast<double>(label));
  return rig;
}

TEST(TorchTest, CrossEntropyAgrees) {
  for (const double smoothing : {0.0, 0.25}) {
    Rig rig = cross_entropy_rig(smoothing, 0);
    expect_agreement(rig, kAll, kF32.within);
  }
  Rig wrong = cross_entropy_rig(0, 10);
  for (const std::string& path : kAll) {
    EXPECT_EQ(wrong.run(*fusediff_target(), path), FUSEDIFF_REJECTED) << path;
  }
}

TEST(TorchTest, ProductsAgree) {
  for (const char* activation : {"none", "relu", "silu", "gelu_tanh"}) {
    Rig rig("matmul");
    rig.input("x", FUSEDIFF_F32, {3, 9});
    rig.input("w", FUSEDIFF_F32, {9, 5}).absent = true;
    rig.input("w_t", FUSEDIFF_F32, {5, 9});
    rig.input("bias", FUSEDIFF_F32, {5});
    rig.output("pre", FUSEDIFF_F32, {3, 5});
    rig.output("y", FUSEDIFF_F32, {3, 5});
    rig.integer("transposed", 1);
    rig.text("activation", activation);
    draw(rig, 8);
    expect_agreement(rig, kAll, kF32.within);
  }
  for (const Format f : {kF32, kBf16}) {
    Rig linear("linear");
    linear.input("x", f.dtype, {3, 9});
    linear.input("w", f.dtype, {5, 9});
    linear.input("bias", f.dtype, {5});
    linear.output("y", f.dtype, {3, 5});
    draw(linear, 9);
    expect_agreement(linear, kOwn, f.within);
  }
}

TEST(TorchTest, GatingAgrees) {
  for (const Format f : {kF32, kF16, kBf16}) {
    for (const int mode : {0, 1}) {
      Rig rig("moe_gating_topk");
      rig.input("x", f.dtype, {6, 32});
      rig.input("bias", f.dtype, {32});
      rig.output("norm_out", FUSEDIFF_F32, {6, 32});
      rig.output("rank", FUSEDIFF_F32, {6, 32});
      rig.output("expert_idx", FUSEDIFF_I32, {6, 3});
      rig.output("y", f.dtype, {6, 3});
      rig.integer("k", 3);
      rig.integer("k_group", 1);
      rig.integer("group_count", 1);
      rig.integer("group_select_mode", mode);
      rig.integer("renorm", mode);
      rig.text("norm_type", mode == 0 ? "sigmoid" : "softmax");
      rig.real("routed_scaling_factor", 2.5);
      rig.real("eps", 1e-20);
      draw(rig, 10);
      // No two ranks of a row near each other: the picks are the same on every path.
      rig.input("bias").lay_out();
      for (int64_t i = 0; i < 192; ++i) {
        rig.input("x").put_number(i, static_cast<double>((i * 37) % 101) / 16 - 4);
        rig.input("bias").put_number(i % 32, 0);
      }
      expect_agreement(rig, kOwn, f.within);
    }
  }
}

// Three tokens, two picks, five of six rows kept: the rig of the whole permute family.
struct Family {
  Rig permute{"moe_permute"}, permute_grad{"moe_permute_grad"}, unpermute{"moe_unpermute"},
      unpermute_grad{"moe_unpermute_grad"};
};

void fill_map(RigTensor& map) {
  const int32_t rows[] = {0, 2, 3, 4, 1, -1};
  for (int64_t i = 0; i < 6; ++i) {
    map.put(i, rows[i]);
  }
}

Family make_family(int32_t dtype, const char* compute) {
  Family f;
  f.permute.input("tokens", dtype, {3, 7});
  RigTensor& indices = f.permute.input("indices", FUSEDIFF_I32, {3, 2});
  f.permute.output("row_id_map", FUSEDIFF_I32, {2, 3});
  f.permute.output("out", dtype, {5, 7});
  f.permute.integer("num_out_tokens", 5);
  draw(f.permute, 11);
  indices.lay_out();
  const int32_t experts[] = {0, 3, 1, 0, 1, 3};
  for (int64_t i = 0; i < 6; ++i) {
    indices.put(i, experts[i]);
  }
  f.permute_grad.input("grad_out", dtype, {5, 7});
  f.permute_grad.input("row_id_map", FUSEDIFF_I32, {2, 3});
  f.permute_grad.output("grad_tokens", dtype, {3, 7});
  f.unpermute.input("in", dtype, {5, 7});
  f.unpermute.input("row_id_map", FUSEDIFF_I32, {2, 3});
  f.unpermute.input("probs", FUSEDIFF_F32, {3, 2});
  f.unpermute.output("out", dtype, {3, 7});
  f.unpermute_grad.input("grad_out", dtype, {3, 7});
  f.unpermute_grad.input("in", dtype, {5, 7});
  f.unpermute_grad.input("row_id_map", FUSEDIFF_I32, {2, 3});
  f.unpermute_grad.input("probs", FUSEDIFF_F32, {3, 2});
  f.unpermute_grad.output("grad_in", dtype, {5, 7});
  f.unpermute_grad.output("grad_probs", FUSEDIFF_F32, {3, 2});
  for (Rig* rig : {&f.permute_grad, &f.unpermute, &f.unpermute_grad}) {
    rig->text("compute", compute);
    draw(*rig, 12);
    rig->input("row_id_map").lay_out();
    fill_map(rig->input("row_id_map"));
  }
  return f;
}

TEST(TorchTest, PermuteFamilyAgrees) {
  for (const Format f : {kF32, kF16, kBf16}) {
    for (const char* compute : {"f32", "storage"}) {
      Family family = make_family(f.dtype, compute);
      expect_agreement(family.permute, kOwn, 0);
      expect_agreement(family.permute_grad, kAll, f.within);
      expect_agreement(family.unpermute, kAll, f.within);
      expect_agreement(family.unpermute_grad, kAll, f.within);
    }
  }
  Family wrong = make_family(FUSEDIFF_F32, "f32");
  wrong.permute_grad.input("row_id_map").put(0, int32_t{3});
  EXPECT_EQ(wrong.permute_grad.run(*fusediff_target(), "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(wrong.permute_grad.error(), "row_id_map names a row twice");
}

TEST(TorchTest, EmptyTensorsAreLegal) {
  Rig rig("softmax");
  rig.input("x", FUSEDIFF_F32, {0, 19});
  rig.output("max", FUSEDIFF_F32, {0});
  rig.output("sum", FUSEDIFF_F32, {0});
  rig.output("y", FUSEDIFF_F32, {0, 19});
  for (const std::string& path : kAll) {
    EXPECT_EQ(rig.run(*fusediff_target(), path), FUSEDIFF_OK) << rig.error();
  }
  Rig product("linear");
  product.input("x", FUSEDIFF_F32, {2, 0});
  product.input("w", FUSEDIFF_F32, {3, 0});
  product.input("bias", FUSEDIFF_F32, {3}).absent = true;
  product.output("y", FUSEDIFF_F32, {2, 3});
  expect_agreement(product, kOwn, 0);
}

TEST(TorchTest, WhatAtenLacksIsUnsupportedAndWhatItRefusesFailed) {
  Rig half("sigmoid");
  half.input("x", FUSEDIFF_F16, {2, 3});
  half.output("y", FUSEDIFF_F16, {2, 3});
  EXPECT_EQ(half.run(*fusediff_target(), "fused"), FUSEDIFF_UNSUPPORTED);
  EXPECT_EQ(half.error(), "\"sigmoid_cpu\" not implemented for 'Half'");
  Rig shapes("linear");
  shapes.input("x", FUSEDIFF_F32, {2, 3});
  shapes.input("w", FUSEDIFF_F32, {4, 5});
  shapes.input("bias", FUSEDIFF_F32, {4}).absent = true;
  shapes.output("y", FUSEDIFF_F32, {2, 4});
  EXPECT_EQ(shapes.run(*fusediff_target(), "fused"), FUSEDIFF_FAILED);
  EXPECT_EQ(shapes.error(), "mat1 and mat2 shapes cannot be multiplied (2x3 and 5x4)");
}

std::string refusal(const char* options) {
  void* context = nullptr;
  if (fusediff_target()->open(options, &context) == FUSEDIFF_OK) {
    fusediff_target()->close(context);
    return "";
  }
  return fusediff_target()->last_error();
}

// One process, so the first context settles both for all that follow: what is refused then names it.
TEST(TorchTest, OptionsAreThoseOfTheProcess) {
  EXPECT_EQ(refusal(""), "");
  EXPECT_EQ(refusal("speed=1"), "unknown option \"speed\", there are: threads=N, capability=default|avx2|avx512");
  EXPECT_EQ(refusal("threads=0"), "threads must be 1 to 1024, not \"0\"");
  EXPECT_EQ(refusal("threads"), "threads must be 1 to 1024, not \"\"");
  EXPECT_EQ(refusal("capability=sse"), "capability must be default, avx2 or avx512, not \"sse\"");
  EXPECT_NE(refusal("threads=1023").find("threads=1023: this process has "), std::string::npos);
  int refused = 0, accepted = 0;
  for (const char* options : {"capability=default", "capability=avx2", "capability=avx512"}) {
    const std::string why = refusal(options);
    accepted += why.empty() ? 1 : 0;
    refused += why.find("ATen chooses once") != std::string::npos || why.find("lacks it") != std::string::npos;
  }
  EXPECT_EQ(accepted, 1);
  EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace fusediff::torch
