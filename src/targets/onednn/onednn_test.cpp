// The oneDNN target as fusediff calls it: every operator against its own plain loops, options, notes, threads. What
// oneDNN gets wrong is not tested here but found by the campaigns of the file `expected`.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kit/rig.h"
#include "onednn/functions.h"
#include "onednn/operators.h"

extern "C" const char* fusediff_note(void);

namespace fusediff::onednn {
namespace {

using namespace kit;
using testing::HasSubstr;

const fusediff_target_v1& target() { return *fusediff_target(); }

// Options refused: the text why; "" where they are taken.
std::string refusal(const std::string& options) {
  void* context = nullptr;
  const fusediff_status status = target().open(options.c_str(), &context);
  if (status == FUSEDIFF_OK) {
    target().close(context);
    return "";
  }
  EXPECT_EQ(status, FUSEDIFF_REJECTED);
  return target().last_error();
}

// One call, made of a function that adds tensors and attributes to a rig; float tensors in `dtype`.
struct Example {
  const char* op;
  std::function<void(Rig&, int32_t dtype)> describe;
  // Allowed distance of a path from the plain loops, in units of the largest magnitude there and of the dtype's
  // roundoff; for the unfused path in bf16 each step rounds.
  double allowed;
};

void eltwise_of(Rig& rig, int32_t dtype, const char* first, const char* then) {
  rig.text("first", first);
  rig.text("then", then);
  rig.input("x", dtype, {5, 33});
  rig.output("y", dtype, {5, 33});
}

void matmul_of(Rig& rig, int32_t dtype, bool transposed, const char* activation) {
  rig.integer("transposed", transposed ? 1 : 0);
  rig.real("scale", 0.75);
  rig.text("activation", activation);
  rig.input("x", dtype, {7, 19});
  rig.input("w", dtype, {19, 21}).absent = transposed;
  rig.input("w_t", dtype, {21, 19}).absent = !transposed;
  rig.input("bias", dtype, {21});
  rig.input("residual", dtype, {7, 21});
  rig.output("y", dtype, {7, 21});
}

void layer_norm_of(Rig& rig, int32_t dtype, bool training) {
  const int32_t wide = dtype == FUSEDIFF_F64 ? dtype : FUSEDIFF_F32;
  rig.integer("training", training ? 1 : 0);
  rig.real("eps", 1e-3);
  rig.input("x", dtype, {6, 40});
  rig.input("gamma", wide, {40});
  rig.input("beta", wide, {40});
  rig.output("mean", wide, {6}).absent = !training;
  rig.output("variance", wide, {6}).absent = !training;
  rig.output("y", dtype, {6, 40});
}

void reduction_of(Rig& rig, int32_t dtype, const char* op, int64_t kept) {
  rig.text("op", op);
  rig.integer("p", 3);
  rig.real("eps", 0.5);
  rig.text("then", "leaky_relu");
  rig.input("x", dtype, {3, 9, 4});
  rig.output("y", dtype, {3, 1, kept});
}

void binary_of(Rig& rig, int32_t dtype, const char* op, double scale, std::vector<int64_t> b) {
  rig.text("op", op);
  rig.real("scale_a", scale);
  rig.real("scale_b", 1);
  rig.text("then", "abs");
  rig.input("a", dtype, {4, 18});
  rig.input("b", dtype, std::move(b));
  rig.output("y", dtype, {4, 18});
}

std::vector<Example> examples() {
  std::vector<Example> all{
      {"logistic_add",
       [](Rig& rig, int32_t dtype) {
         rig.input("x", dtype, {5, 33});
         rig.input("b", dtype, {5, 33});
         rig.output("y", dtype, {5, 33});
       },
       8},
      {"inner_product",
       [](Rig& rig, int32_t dtype) {
         rig.text("activation", "leaky_relu");
         rig.input("x", dtype, {7, 19});
         rig.input("w", dtype, {21, 19});
         rig.input("bias", dtype, {21});
         rig.input("residual", dtype, {7, 21});
         rig.output("y", dtype, {7, 21});
       },
       100},
      {"matmul", [](Rig& rig, int32_t dtype) { matmul_of(rig, dtype, false, "relu"); }, 100},
      {"matmul", [](Rig& rig, int32_t dtype) { matmul_of(rig, dtype, true, "none"); }, 100},
      {"matmul_activation", [](Rig& rig, int32_t dtype) { matmul_of(rig, dtype, true, "gelu_erf"); }, 100},
      {"layer_norm", [](Rig& rig, int32_t dtype) { layer_norm_of(rig, dtype, false); }, 100},
      {"layer_norm", [](Rig& rig, int32_t dtype) { layer_norm_of(rig, dtype, true); }, 100},
      {"binary",
       [](Rig& rig, int32_t dtype) {
         binary_of(rig, dtype, "div", 2.5, {1, 18});
       },
       8},
      {"binary",
       [](Rig& rig, int32_t dtype) {
         binary_of(rig, dtype, "mul", 1, {4, 1});
       },
       8},
      {"binary",
       [](Rig& rig, int32_t dtype) {
         binary_of(rig, dtype, "ge", 1, {4, 18});
       },
       0}};
  for (const char* op : {"max", "min", "sum", "mul", "mean", "norm_max", "norm_sum", "power_max", "power_sum"}) {
    for (const int64_t kept : {1, 4}) {
      all.push_back({"reduction", [op, kept](Rig& rig, int32_t dtype) { reduction_of(rig, dtype, op, kept); }, 100});
    }
  }
  for (const bool log : {false, true}) {
    for (const int64_t inner : {1, 5}) {
      all.push_back({"softmax",
                     [log, inner](Rig& rig, int32_t dtype) {
                       rig.integer("log", log ? 1 : 0);
                       rig.input("x", dtype, {4, 17, inner});
                       rig.output("y", dtype, {4, 17, inner});
                     },
                     30});
    }
  }
  return all;
}

void fill(Rig& rig, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 1);
  for (RigTensor& tensor : rig.inputs()) {
    for (int64_t i = 0; i < tensor.count(); ++i) {
      tensor.put_number(i, normal(random));
    }
  }
}

// The values of the rig's inputs, which may be of a narrower dtype, as the inputs of another.
void copy_inputs(Rig& from, Rig& to) {
  for (size_t t = 0; t < from.inputs().size(); ++t) {
    for (int64_t i = 0; i < from.inputs()[t].count(); ++i) {
      to.inputs()[t].put_number(i, from.inputs()[t].number(i));
    }
  }
}

// Largest distance of an output from the truth, in units of the largest magnitude of the truth.
double distance(RigTensor& output, RigTensor& truth) {
  double largest = 1e-300;
  double apart = 0;
  for (int64_t i = 0; i < output.count(); ++i) {
    largest = std::max(largest, std::fabs(truth.number(i)));
    const double here = std::fabs(output.number(i) - truth.number(i));
    apart = std::isnan(here) ? HUGE_VAL : std::max(apart, here);
  }
  return apart / largest;
}

void expect_near_the_loops(const Example& example, int32_t dtype, double roundoff) {
  Rig exact(example.op);
  example.describe(exact, FUSEDIFF_F64);
  Rig rig(example.op);
  example.describe(rig, dtype);
  fill(rig, 7);
  copy_inputs(rig, exact);
  ASSERT_EQ(exact.run(target(), "reference"), FUSEDIFF_OK) << example.op << ": " << exact.error();
  for (const char* path : {"fused", "unfused", "reference"}) {
    const fusediff_status status = rig.run(target(), path);
    if (status == FUSEDIFF_UNSUPPORTED && dtype == FUSEDIFF_BF16) {
      continue;  // a CPU without AVX-512
    }
    ASSERT_EQ(status, FUSEDIFF_OK) << example.op << ":" << path << ": " << rig.error();
    EXPECT_EQ(rig.damage(), "") << example.op << ":" << path;
    for (size_t t = 0; t < rig.outputs().size(); ++t) {
      if (!rig.outputs()[t].absent) {
        EXPECT_LE(distance(rig.outputs()[t], exact.outputs()[t]), example.allowed * roundoff)
            << example.op << ":" << path << " " << rig.outputs()[t].name << " in " << dtype_name(dtype);
      }
    }
  }
}

TEST(OneDnnTest, EveryOperatorIsNearItsLoopsInF32) {
  for (const Example& example : examples()) {
    expect_near_the_loops(example, FUSEDIFF_F32, std::ldexp(1.0, -24));
  }
}

TEST(OneDnnTest, EveryOperatorIsNearItsLoopsInBf16) {
  for (const Example& example : examples()) {
    expect_near_the_loops(example, FUSEDIFF_BF16, std::ldexp(1.0, -9));
  }
}

TEST(OneDnnTest, EveryFunctionIsNearItsFormula) {
  const nlohmann::json schema = nlohmann::json::parse(target().schema());
  for (const auto& op : schema.at("operators")) {
    if (op.at("name") != "eltwise") {
      continue;
    }
    for (const std::string first : op.at("attrs").at(0).at("choice")) {
      for (const double x : {0.125, 0.5, 1.75, 4.0}) {
        Rig rig("eltwise");
        eltwise_of(rig, FUSEDIFF_F32, first.c_str(), "none");
        for (int64_t i = 0; i < rig.input("x").count(); ++i) {
          rig.input("x").put_number(i, x);
        }
        ASSERT_EQ(rig.run(target(), "fused"), FUSEDIFF_OK) << first << ": " << rig.error();
        const double y = find_function(first)->exact(x);
        EXPECT_NEAR(rig.output("y").number(0), y, 1e-5 * std::max(1.0, std::fabs(y))) << first << " of " << x;
        EXPECT_EQ(rig.output("y").bits(0), rig.output("y").bits(164)) << first << " of " << x;
      }
    }
  }
}

TEST(OneDnnTest, EveryChoiceOfASchemaIsKnown) {
  const nlohmann::json schema = nlohmann::json::parse(target().schema());
  for (const auto& op : schema.at("operators")) {
    for (const auto& attr : op.value("attrs", nlohmann::json::array())) {
      if (attr.contains("choice") && attr.at("name") != "op") {
        for (const std::string choice : attr.at("choice")) {
          EXPECT_NO_THROW((void)find_function(choice)) << op.at("name") << " " << choice;
        }
      }
    }
  }
  EXPECT_THROW((void)find_function("sine"), Failure);
}

TEST(OneDnnTest, Int8ProductsAreExactInEveryPath) {
  for (const int32_t dtype : {FUSEDIFF_U8, FUSEDIFF_I8}) {
    Rig rig("matmul_int8");
    rig.integer("zero_point", 3);
    rig.real("scale", 1);
    rig.text("activation", "relu");
    RigTensor& x = rig.input("x", dtype, {3, 37});
    RigTensor& w = rig.input("w", FUSEDIFF_I8, {37, 18});
    rig.output("y", FUSEDIFF_F32, {3, 18});
    // Small enough that no kernel's 16-bit sums saturate.
    for (int64_t i = 0; i < x.count(); ++i) {
      x.put_number(i, static_cast<double>(i * 7 % 64));
    }
    for (int64_t i = 0; i < w.count(); ++i) {
      w.put_number(i, static_cast<double>(i * 11 % 128 - 64));
    }
    ASSERT_EQ(rig.run(target(), "reference"), FUSEDIFF_OK) << rig.error();
    std::vector<double> exact;
    for (int64_t i = 0; i < 3 * 18; ++i) {
      exact.push_back(rig.output("y").number(i));
    }
    for (const char* path : {"fused", "unfused"}) {
      ASSERT_EQ(rig.run(target(), path), FUSEDIFF_OK) << path << ": " << rig.error();
      EXPECT_EQ(rig.damage(), "") << path;
      for (int64_t i = 0; i < 3 * 18; ++i) {
        ASSERT_EQ(rig.output("y").number(i), exact[static_cast<size_t>(i)]) << path << " " << i;
      }
    }
  }
}

TEST(OneDnnTest, UnknownOptionsAreOneLine) {
  EXPECT_EQ(refusal(""), "");
  EXPECT_EQ(refusal("scratchpad=library,primitive=own,threads=2,empty=skip"), "");
  EXPECT_EQ(refusal("fast=1"), "unknown option \"fast\"; there are isa, scratchpad, primitive, threads and empty");
  EXPECT_EQ(refusal("fast"), "option \"fast\" is not key=value");
  EXPECT_EQ(refusal("scratchpad=mine"), "scratchpad must be user or library, not \"mine\"");
  EXPECT_THAT(refusal("isa=mmx"), HasSubstr("isa must be sse41, avx, "));
  EXPECT_THAT(refusal("threads=many"), HasSubstr("threads must be 0 to 256"));
  EXPECT_THAT(refusal("threads=999999999999"), HasSubstr("threads must be 0 to 256"));
}

TEST(OneDnnTest, AnotherLevelInOneProcessIsRefused) {
  ASSERT_EQ(refusal("isa=default"), "");
  EXPECT_EQ(refusal("isa=sse41"),
            "isa=sse41: oneDNN runs at isa=default in this process and cannot change; --isolate gives each side a "
            "process of its own");
}

// In a process of its own: at that level, and says so. Exits 0 if all is well.
[[noreturn]] void run_at_sse41() {
  void* context = nullptr;
  bool good = target().open("isa=sse41", &context) == FUSEDIFF_OK;
  good = good && refusal("isa=default").find("runs at isa=sse41") != std::string::npos;
  good = good && dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::sse41;
  std::_Exit(good ? 0 : 1);
}

TEST(OneDnnDeathTest, TheFirstContextSetsTheLevel) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_at_sse41(), testing::ExitedWithCode(0), "");
}

// A context with options, and calls of one rig on it: Rig itself opens with "".
class Session {
 public:
  explicit Session(const char* options) { EXPECT_EQ(target().open(options, &context_), FUSEDIFF_OK); }
  ~Session() { target().close(context_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // layer_norm of rows that begin at `from`; the bytes of y, and how large the workspace was.
  std::vector<float> layer_norm(float from, int64_t rows, int64_t columns, size_t* workspace = nullptr,
                                fusediff_status expected = FUSEDIFF_OK) {
    std::vector<float> x(static_cast<size_t>(rows * columns));
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = from + static_cast<float>(i * 37 % 101);
    }
    std::vector<float> y(x.size(), -1);
    const int64_t shape[] = {rows, columns};
    const int64_t stride[] = {columns, 1};
    const int64_t one = 1;
    const fusediff_attr attrs[] = {{"training", FUSEDIFF_INT, 0, 0, ""}, {"eps", FUSEDIFF_FLOAT, 0, 1e-5, ""}};
    const fusediff_tensor inputs[] = {{"x", shape, stride, x.data(), 2, FUSEDIFF_F32},
                                      {"gamma", &columns, &one, nullptr, 1, FUSEDIFF_F32},
                                      {"beta", &columns, &one, nullptr, 1, FUSEDIFF_F32}};
    const fusediff_tensor outputs[] = {{"mean", &rows, &one, nullptr, 1, FUSEDIFF_F32},
                                       {"variance", &rows, &one, nullptr, 1, FUSEDIFF_F32},
                                       {"y", shape, stride, y.data(), 2, FUSEDIFF_F32}};
    fusediff_call call{sizeof(fusediff_call), "layer_norm", "fused", attrs, 2, inputs, 3, outputs, 3, nullptr, 0};
    size_t bytes = 0;
    const fusediff_status status = target().workspace_bytes(context_, &call, &bytes);
    EXPECT_EQ(status, expected);
    if (status != FUSEDIFF_OK) {
      return {};
    }
    std::vector<char> memory(bytes + 64);
    call.workspace = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
    call.workspace_size = bytes;
    EXPECT_EQ(target().run(context_, &call), FUSEDIFF_OK) << target().last_error();
    if (workspace != nullptr) {
      *workspace = bytes;
    }
    return y;
  }

 private:
  void* context_ = nullptr;
};

TEST(OneDnnTest, TheScratchpadIsTheWorkspaceOnlyWhereTheUserBringsIt) {
  size_t user = 0;
  size_t library = 0;
  const std::vector<float> by_user = Session("").layer_norm(1, 8, 64, &user);
  EXPECT_EQ(Session("scratchpad=library").layer_norm(1, 8, 64, &library), by_user);
  EXPECT_EQ(Session("primitive=own").layer_norm(1, 8, 64), by_user);
  EXPECT_EQ(library, 0U);
  EXPECT_GT(user, 0U);
}

TEST(OneDnnTest, EmptyTensorsAreLeftOutOnRequest) {
  EXPECT_EQ(Session("").layer_norm(1, 0, 64).size(), 0U);
  Session("empty=skip").layer_norm(1, 0, 64, nullptr, FUSEDIFF_UNSUPPORTED);
  EXPECT_THAT(target().last_error(), HasSubstr("empty=skip"));
}

TEST(OneDnnTest, AContextServesManyThreads) {
  for (const char* options : {"", "primitive=own,scratchpad=library"}) {
    Session session(options);
    std::vector<std::vector<float>> alone;
    for (int t = 0; t < 4; ++t) {
      alone.push_back(session.layer_norm(static_cast<float>(t), 16, 128));
    }
    std::vector<int> wrong(4);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          wrong[t] += session.layer_norm(static_cast<float>(t), 16, 128) == alone[t] ? 0 : 1;
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_THAT(wrong, testing::Each(0)) << options;
  }
}

TEST(OneDnnTest, TheNoteNamesTheImplementationsOfTheThreadsLastCall) {
  Rig rig("logistic_add");
  examples()[0].describe(rig, FUSEDIFF_F32);
  fill(rig, 1);
  ASSERT_EQ(rig.run(target(), "unfused"), FUSEDIFF_OK);
  const std::string two = fusediff_note();
  EXPECT_THAT(two, HasSubstr("; ")) << "two primitives";
  ASSERT_EQ(rig.run(target(), "fused"), FUSEDIFF_OK);
  const std::string one = fusediff_note();
  EXPECT_EQ(one.find("; "), std::string::npos) << one;
  EXPECT_NE(one, "");
  ASSERT_EQ(rig.run(target(), "unfused"), FUSEDIFF_OK);
  EXPECT_EQ(fusediff_note(), two) << "equal calls, equal notes";
  std::thread([] { EXPECT_STREQ(fusediff_note(), ""); }).join();
  ASSERT_EQ(rig.run(target(), "reference"), FUSEDIFF_OK);
  EXPECT_STREQ(fusediff_note(), "plain loops");
}

TEST(OneDnnTest, TheNoteIsOneShortLine) {
  Rig rig("layer_norm");
  layer_norm_of(rig, FUSEDIFF_F32, true);
  fill(rig, 1);
  ASSERT_EQ(rig.run(target(), "unfused"), FUSEDIFF_OK);
  const std::string note = fusediff_note();
  EXPECT_LE(note.size(), 200U);
  EXPECT_EQ(note.find('\n'), std::string::npos);
  set_note(std::string(500, 'x'));
  EXPECT_EQ(fusediff_note(), std::string(200, 'x'));
}

TEST(OneDnnTest, TheLibraryExportsItsTwoFunctions) {
  void* library = dlopen(FUSEDIFF_BIN_DIR "/targets/onednn.so", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_NE(dlsym(library, "fusediff_target"), nullptr);
  EXPECT_NE(dlsym(library, "fusediff_note"), nullptr);
}

}  // namespace
}  // namespace fusediff::onednn
