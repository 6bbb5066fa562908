#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "builtin/layouts_agree.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int kRounds = 200;

struct Sizes {
  int64_t tokens, heads, columns, pairs, positions;
  bool interleaved, storage;

  int64_t first(int64_t pair) const { return interleaved ? 2 * pair : pair; }
  int64_t second(int64_t pair) const { return interleaved ? 2 * pair + 1 : pairs + pair; }
};

Sizes random_sizes(std::mt19937_64& random) {
  Sizes s{};
  s.tokens = static_cast<int64_t>(random() % 5);
  s.heads = static_cast<int64_t>(random() % 4);
  s.columns = static_cast<int64_t>(random() % 40);
  s.pairs = random() % 2 == 0 ? s.columns / 2 : static_cast<int64_t>(random() % 20) % (s.columns / 2 + 1);
  s.positions = 1 + static_cast<int64_t>(random() % 9);
  s.interleaved = random() % 2 == 0;
  s.storage = random() % 2 == 0;
  return s;
}

Rig rope_rig(int32_t dtype, const Sizes& s) {
  Rig rig("rope");
  rig.input("x", dtype, {s.tokens, s.heads, s.columns});
  rig.input("positions", FUSEDIFF_I32, {s.tokens});
  rig.input("cos", dtype, {s.positions, s.pairs});
  rig.input("sin", dtype, {s.positions, s.pairs});
  rig.output("y", dtype, {s.tokens, s.heads, s.columns});
  rig.text("style", s.interleaved ? "interleaved" : "halves");
  rig.text("compute", s.storage ? "storage" : "f32");
  return rig;
}

void randomise(Rig& rig, std::mt19937_64& random, const Sizes& s, bool tame) {
  for (RigTensor& in : rig.inputs()) {
    random_layout(in, random, true);
    for (int64_t i = 0; in.name == "positions" && i < in.count(); ++i) {
      in.put(i, static_cast<int32_t>(random() % static_cast<uint64_t>(s.positions)));
    }
    if (in.name != "positions") random_values(in, random, 1.0, tame);
  }
  random_layout(rig.output("y"), random, false);
}

TEST(RopeTest, PathsAndLayoutsAgreeByBits) {
  std::mt19937_64 random(61);
  for (const int32_t dtype : kEveryFloat) {
    for (int i = 0; i < kRounds; ++i) {
      const Sizes s = random_sizes(random);
      Rig rig = rope_rig(dtype, s);
      randomise(rig, random, s, false);
      ASSERT_TRUE(layouts_agree(rig)) << dtype_name(dtype) << " " << i;
      ASSERT_TRUE(rows_agree(rig, {"x", "positions", "y"})) << dtype_name(dtype) << " " << i;
    }
  }
}

// Worst error of a head as a share of the bound; what is not rotated must be equal.
long double share_of(Rig& rig, const Sizes& s, int64_t head) {
  std::vector<long double> truth(static_cast<size_t>(s.columns));
  const auto number = [&](const char* name, int64_t i) { return static_cast<long double>(rig.input(name).number(i)); };
  const int64_t position = rig.input("positions").get<int32_t>(head / s.heads);
  for (int64_t c = 0; c < s.columns; ++c) truth[static_cast<size_t>(c)] = number("x", head * s.columns + c);
  for (int64_t n = 0; n < s.pairs; ++n) {
    const long double a = number("x", head * s.columns + s.first(n)), b = number("x", head * s.columns + s.second(n));
    const long double c = number("cos", position * s.pairs + n), d = number("sin", position * s.pairs + n);
    truth[static_cast<size_t>(s.first(n))] = a * c - b * d;
    truth[static_cast<size_t>(s.second(n))] = b * c + a * d;
  }
  long double largest = 0, worst = 0;
  for (const long double value : truth) largest = std::max(largest, std::abs(value));
  for (int64_t c = 0; c < s.columns; ++c) {
    const long double error = ulp_error(rig.output("y"), head * s.columns + c, truth[static_cast<size_t>(c)], largest);
    worst = std::max(worst, c < 2 * s.pairs ? error / 6 : error * 1000);
  }
  return worst;
}

TEST(RopeTest, IsWithinItsBound) {
  std::mt19937_64 random(62);
  for (const int32_t dtype : kEveryFloat) {
    for (int i = 0; i < kRounds; ++i) {
      const Sizes s = random_sizes(random);
      Rig rig = rope_rig(dtype, s);
      randomise(rig, random, s, true);
      ASSERT_TRUE(paths_agree(rig));
      for (int64_t head = 0; head < s.tokens * s.heads; ++head) {
        ASSERT_LE(share_of(rig, s, head), 1) << dtype_name(dtype) << " " << i;
      }
    }
  }
}

// a * cos = b * sin up to their rounding: y is small, and measured on its pair.
TEST(RopeTest, IsWithinItsBoundWhereAPairCancels) {
  for (const int32_t dtype : kEveryFloat) {
    for (const bool storage : {false, true}) {
      const Sizes s{1, 1, 2, 1, 1, false, storage};
      Rig rig = rope_rig(dtype, s);
      rig.input("positions").put(0, int32_t{0});
      rig.input("x").put_number(0, 1.1);
      rig.input("x").put_number(1, 1.3);
      rig.input("cos").put_number(0, 1.3);
      rig.input("sin").put_number(0, 1.1);
      ASSERT_TRUE(paths_agree(rig));
      EXPECT_LE(share_of(rig, s, 0), 1) << dtype_name(dtype);
    }
  }
}

TEST(RopeTest, BoundRejectsTheOtherStyleAndTheOtherSign) {
  const Sizes s{1, 1, 4, 2, 1, false, false};
  Rig rig = rope_rig(FUSEDIFF_BF16, s);
  const double values[] = {1, 2, 3, 4}, cos[] = {0.6, 0.8}, sin[] = {0.8, 0.6};
  rig.input("positions").put(0, int32_t{0});
  for (int64_t i = 0; i < 4; ++i) rig.input("x").put_number(i, values[i]);
  for (int64_t n = 0; n < 2; ++n) {
    rig.input("cos").put_number(n, cos[n]);
    rig.input("sin").put_number(n, sin[n]);
  }
  ASSERT_TRUE(paths_agree(rig));
  EXPECT_LE(share_of(rig, s, 0), 1);
  Sizes other = s;
  other.interleaved = true;
  EXPECT_GT(share_of(rig, other, 0), 1);
  for (int64_t n = 0; n < 2; ++n) rig.input("sin").put_number(n, -sin[n]);
  EXPECT_GT(share_of(rig, s, 0), 1);
}

// By hand: a quarter turn takes (a, b) to (-b, a), and what is behind the pairs stays.
TEST(RopeTest, QuarterTurn) {
  for (const int32_t dtype : kEveryFloat) {
    for (const bool interleaved : {false, true}) {
      Rig rig = rope_rig(dtype, {2, 1, 5, 2, 3, interleaved, false});
      for (int64_t i = 0; i < 10; ++i) rig.input("x").put_number(i, static_cast<double>(i % 5 + 1));
      for (int64_t i = 0; i < 6; ++i) {
        rig.input("cos").put_number(i, i / 2 == 2 ? 0 : 1);
        rig.input("sin").put_number(i, i / 2 == 2 ? 1 : 0);
      }
      rig.input("positions").put(0, int32_t{2});
      rig.input("positions").put(1, int32_t{0});
      ASSERT_TRUE(paths_agree(rig));
      const double halves[] = {-3, -4, 1, 2, 5}, pairs[] = {-2, 1, -4, 3, 5};
      for (int64_t i = 0; i < 5; ++i) {
        EXPECT_EQ(rig.output("y").number(i), interleaved ? pairs[i] : halves[i]) << i;
        EXPECT_EQ(rig.output("y").number(5 + i), static_cast<double>(i + 1)) << i;
      }
    }
  }
}

// (1 + 2^-7)^2 = 1 + 2^-6 + 2^-14 is 1 + 2^-6 in bf16; minus that it is 0, or 2^-14 where the product is kept in f32.
TEST(RopeTest, ComputeDecidesWhereProductsAreKept) {
  for (const bool storage : {false, true}) {
    Rig rig = rope_rig(FUSEDIFF_BF16, {1, 1, 2, 1, 1, false, storage});
    rig.input("positions").put(0, int32_t{0});
    const double a = 1.0078125;  // 1 + 2^-7; its square is 1 + 2^-6 + 2^-14
    rig.input("x").put_number(0, a);
    rig.input("x").put_number(1, 1.0);
    rig.input("cos").put_number(0, a);
    rig.input("sin").put_number(0, 1.015625);
    ASSERT_TRUE(paths_agree(rig));
    EXPECT_EQ(rig.output("y").number(0), storage ? 0.0 : std::ldexp(1.0, -14));
  }
}

TEST(RopeTest, OutputMayLieOnTheInput) {
  for (const int32_t dtype : {FUSEDIFF_F32, FUSEDIFF_BF16}) {
    for (const char* style : {"halves", "interleaved"}) {
      Rig rig = rope_rig(dtype, {3, 2, 37, 16, 4, style[0] == 'i', false});
      uint64_t seed = 1;
      for (const char* name : {"x", "cos", "sin"}) counted_values(rig.input(name), seed++);
      for (int64_t t = 0; t < 3; ++t) rig.input("positions").put(t, static_cast<int32_t>(3 - t));
      const fusediff_attr how{"style", FUSEDIFF_STRING, 0, 0, style};
      const fusediff_attr compute{"compute", FUSEDIFF_STRING, 0, 0, "f32"};
      EXPECT_TRUE(in_place_agrees(rig, "rope", {how, compute}, {{"y", "x"}}));
    }
  }
}

TEST(RopeTest, EmptyIsLegal) {
  for (const Sizes& s : {Sizes{0, 2, 4, 2, 1, false, false}, Sizes{2, 0, 4, 2, 1, true, false},
                         Sizes{2, 2, 0, 0, 1, false, true}, Sizes{2, 2, 3, 0, 1, true, true}}) {
    Rig rig = rope_rig(FUSEDIFF_F16, s);
    for (int64_t t = 0; t < s.tokens; ++t) rig.input("positions").put(t, int32_t{0});
    for (int64_t i = 0; i < rig.input("x").count(); ++i) rig.input("x").put_number(i, static_cast<double>(i));
    ASSERT_TRUE(paths_agree(rig));
    for (int64_t i = 0; i < rig.output("y").count(); ++i) EXPECT_EQ(rig.output("y").number(i), static_cast<double>(i));
  }
}

TEST(RopeTest, BrokenCallsAreRejected) {
  const fusediff_target_v1& target = *fusediff_target();
  Rig wide = rope_rig(FUSEDIFF_F32, {1, 1, 5, 3, 1, false, false});
  EXPECT_EQ(wide.run(target, "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(wide.error(), "cos has 3 pairs, x room for 2 in 5 columns");
  for (const int32_t position : {-1, 2}) {
    Rig outside = rope_rig(FUSEDIFF_F32, {1, 1, 4, 2, 2, false, false});
    outside.input("positions").put(0, position);
    for (const char* path : {"fused", "unfused"}) {
      EXPECT_EQ(outside.run(target, path), FUSEDIFF_REJECTED);
      EXPECT_EQ(outside.error(), "positions[0] is " + std::to_string(position) + ", not one of 2 rows of the tables");
    }
  }
}

TEST(RopeTest, SameBitsFromEveryCompiler) {
  const uint64_t golden[] = {0x0fd9e5c7cc04ab1bu, 0x8f76e371fad9dd19u, 0x222959ea893d2c1du,
                             0x9c65b2aa70a3b3cdu, 0xdd3634e3c679be62u, 0xa0dc9aa945f2ab4du};
  for (size_t i = 0; i < 6; ++i) {
    Rig rig = rope_rig(kEveryFloat[i], {5, 3, 38, 16, 7, i % 2 == 0, false});
    uint64_t seed = 1;
    for (const char* name : {"x", "cos", "sin"}) counted_values(rig.input(name), seed++);
    for (int64_t t = 0; t < 5; ++t) rig.input("positions").put(t, static_cast<int32_t>(t));
    ASSERT_TRUE(paths_agree(rig));
    EXPECT_EQ(digest(rig), golden[i]) << dtype_name(kEveryFloat[i]);
  }
}

}  // namespace
}  // namespace fusediff::builtin
