// The bounds of the moe and mhc operators on sums that are hard to add: every path, dtype and precision, and the same
// sums in other orders, as somebody else may add them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "builtin/last_place.h"
#include "builtin/moe_permute_rig.h"
#include "builtin/paths_agree.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

using Terms = std::vector<double>;

// The value rounded to the dtype.
double held(int32_t dtype, double value) {
  RigTensor one;
  one.dtype = dtype;
  one.shape = {1};
  one.lay_out();
  one.put_number(0, value);
  return one.number(0);
}

// n terms each, all held by the dtype without overflow of the sums of their magnitudes.
std::vector<Terms> hard_sums(int32_t dtype, int64_t n) {
  const double full = 2 / spacing(dtype, 1.0);  // from here on adding 1 is rounded: 2^24 in f32
  const double most = dtype == FUSEDIFF_F32 || dtype == FUSEDIFF_BF16 ? 1e30
                      : dtype == FUSEDIFF_F8E4M3FN                    ? 256 / static_cast<double>(n)
                                                                      : 16384 / static_cast<double>(n);
  const double large = std::min(full, most);
  const double least = dtype == FUSEDIFF_F32 || dtype == FUSEDIFF_BF16 ? 1e-45 : spacing(dtype, 0);
  const std::vector<std::function<double(int64_t)>> kinds = {
      [&](int64_t i) { return i % 4 == 1   ? most
                              : i % 4 == 3 ? -most
                                           : 1; },  // Kahan: 1, large, 1, -large
      [&](int64_t i) {
        return i % 3 == 0 ? 10000 / 1e4 * large : i % 3 == 1 ? 3.14159 : 2.71828;
      },  // Kahan: 10000.0 + 3.14159 + 2.71828
      [&](int64_t i) { return i % 2 == 0 ? most : -most * (1 - 1.0 / static_cast<double>(i + 2)); },  // changing signs
      [&](int64_t i) { return i == 0 ? large : 1; },             // 2^24 + 1 + 1 + ...
      [&](int64_t i) { return i + 1 == n ? large : 1; },         // 1 + 1 + ... + 2^24
      [&](int64_t i) { return i == 0 ? 1 : 1 / full; },          // every one is half a unit: a tie
      [&](int64_t i) { return i == 0 ? 1 : 1.5 / full; },        // every one is rounded up
      [&](int64_t) { return 0.1; },                              // equal terms
      [&](int64_t i) { return (i % 2 == 0 ? 3 : -1) * least; },  // subnormals
  };
  std::vector<Terms> sums;
  for (const auto& kind : kinds) {
    Terms& terms = sums.emplace_back();
    for (int64_t i = 0; i < n; ++i) {
      terms.push_back(held(dtype, kind(i)));
    }
  }
  return sums;
}

// The exact sum (long double has 11 bits to spare over f64 and 40 over f32) and that of the magnitudes.
struct Sum {
  long double value = 0, magnitudes = 0;

  void add(long double term) {
    value += term;
    magnitudes += std::abs(term);
  }
};

Sum sum_of(const Terms& terms, double weight) {
  Sum sum;
  for (const double term : terms) {
    sum.add(static_cast<long double>(term) * weight);
  }
  return sum;
}

double error_in_ulp(double got, const Sum& sum, int32_t dtype) {
  const double error = static_cast<double>(std::abs(static_cast<long double>(got) - sum.value));
  return error / spacing(dtype, static_cast<double>(sum.magnitudes));
}

// The products and their sum in f32: in order, backwards, smallest first, largest first, in pairs.
std::vector<float> other_orders(const Terms& terms, float weight) {
  std::vector<float> products;
  for (const double term : terms) {
    products.push_back(static_cast<float>(term) * weight);
  }
  const auto in_order = [](const std::vector<float>& all) {
    float sum = 0;
    for (const float one : all) {
      sum += one;
    }
    return sum;
  };
  std::vector<float> sums = {in_order(products)};
  std::reverse(products.begin(), products.end());
  sums.push_back(in_order(products));
  std::vector<float> pairs = products;
  while (pairs.size() > 1) {
    std::vector<float> half;
    for (size_t i = 0; i < pairs.size(); i += 2) {
      half.push_back(i + 1 < pairs.size() ? pairs[i] + pairs[i + 1] : pairs[i]);
    }
    pairs = half;
  }
  sums.push_back(pairs[0]);
  std::sort(products.begin(), products.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
  sums.push_back(in_order(products));
  std::reverse(products.begin(), products.end());
  sums.push_back(in_order(products));
  return sums;
}

// One token whose picks are the terms, a column for each sum; row p is pick p.
void put_sums(Rig& rig, const char* rows, const std::vector<Terms>& sums) {
  const int64_t columns = static_cast<int64_t>(sums.size()), picks = static_cast<int64_t>(sums[0].size());
  for (int64_t k = 0; k < picks; ++k) {
    rig.input("row_id_map").put(k, static_cast<int32_t>(k));
    for (int64_t c = 0; c < columns; ++c) {
      rig.input(rows).put_number(k * columns + c, sums[static_cast<size_t>(c)][static_cast<size_t>(k)]);
    }
  }
}

TEST(BoundsTest, MoePermuteGradOnHardSums) {
  for (const int32_t dtype : kPermuteDtypes) {
    for (const int64_t picks : {1, 2, 3, 8, 32, 128}) {
      for (const bool storage : {false, true}) {
        const std::vector<Terms> sums = hard_sums(dtype, picks);
        const PermuteSizes s{1, static_cast<int64_t>(sums.size()), picks, picks, picks};
        Rig rig = permute_grad_rig(dtype, s, storage);
        put_sums(rig, "grad_out", sums);
        ASSERT_TRUE(paths_agree(rig));
        for (size_t c = 0; c < sums.size(); ++c) {
          const double got = rig.output("grad_tokens").number(static_cast<int64_t>(c));
          EXPECT_LE(error_in_ulp(got, sum_of(sums[c], 1), dtype), static_cast<double>(picks))
              << dtype_name(dtype) << " sum " << c << " of " << picks << (storage ? " in storage" : "");
        }
      }
    }
  }
}

TEST(BoundsTest, MoeUnpermuteOnHardSums) {
  for (const int32_t dtype : kPermuteDtypes) {
    for (const int64_t picks : {1, 2, 3, 8, 32, 128}) {
      for (const bool storage : {false, true}) {
        const std::vector<Terms> sums = hard_sums(dtype, picks);
        const PermuteSizes s{1, static_cast<int64_t>(sums.size()), picks, picks, picks};
        Rig rig = unpermute_rig(dtype, s, storage);
        const double weight = held(rig.input("probs").dtype, 0.7);
        put_sums(rig, "in", sums);
        for (int64_t k = 0; k < picks; ++k) {
          rig.input("probs").put_number(k, weight);
        }
        ASSERT_TRUE(paths_agree(rig));
        for (size_t c = 0; c < sums.size(); ++c) {
          const double got = rig.output("out").number(static_cast<int64_t>(c));
          EXPECT_LE(error_in_ulp(got, sum_of(sums[c], weight), dtype), 2 * static_cast<double>(picks))
              << dtype_name(dtype) << " sum " << c << " of " << picks << (storage ? " in storage" : "");
        }
      }
    }
  }
}

// A dot product with 0.7 in every place, a token for each sum: 512 equal bf16 terms among them.
TEST(BoundsTest, MoeUnpermuteGradOnHardSums) {
  for (const int32_t dtype : kPermuteDtypes) {
    for (const int64_t columns : {1, 2, 15, 16, 17, 512}) {
      const std::vector<Terms> sums = hard_sums(dtype, columns);
      const int64_t tokens = static_cast<int64_t>(sums.size());
      Rig rig = unpermute_grad_rig(dtype, {tokens, columns, 1, 1, tokens});
      const double weight = held(dtype, 0.7);
      rig.input("probs").absent = true;
      for (int64_t t = 0; t < tokens; ++t) {
        rig.input("row_id_map").put(t, static_cast<int32_t>(t));
        for (int64_t h = 0; h < columns; ++h) {
          rig.input("grad_out").put_number(t * columns + h, sums[static_cast<size_t>(t)][static_cast<size_t>(h)]);
          rig.input("in").put_number(t * columns + h, weight);
        }
      }
      ASSERT_TRUE(paths_agree(rig));
      for (size_t t = 0; t < sums.size(); ++t) {
        RigTensor& out = rig.output("grad_probs");
        EXPECT_LE(error_in_ulp(out.number(static_cast<int64_t>(t)), sum_of(sums[t], weight), out.dtype),
                  2 * static_cast<double>(columns))
            << dtype_name(dtype) << " sum " << t << " of " << columns;
      }
    }
  }
}

// x is 0.7 throughout, each row of phi one of the sums.
TEST(BoundsTest, MhcProductsOnHardSums) {
  for (const int32_t dtype : {FUSEDIFF_F16, FUSEDIFF_BF16}) {
    for (const int64_t channels : {1, 2, 15, 16, 17, 512}) {
      std::vector<Terms> sums = hard_sums(FUSEDIFF_F32, channels);
      for (size_t first = 0; first + 3 <= sums.size(); first += 3) {
        Rig rig("mhc_pre_sinkhorn");
        RigTensor& x = rig.input("x", dtype, {1, 1, 1, channels});
        RigTensor& phi = rig.input("phi", FUSEDIFF_F32, {3, channels});
        counted_values(rig.input("alpha", FUSEDIFF_F32, {3}), 1);
        counted_values(rig.input("bias", FUSEDIFF_F32, {3}), 2);
        rig.output("hin", dtype, {1, 1, channels});
        rig.output("h_post", FUSEDIFF_F32, {1, 1, 1});
        rig.output("h_res", FUSEDIFF_F32, {1, 1, 1, 1});
        rig.output("h_pre", FUSEDIFF_F32, {1, 1, 1});
        RigTensor& products = rig.output("hc_before_norm", FUSEDIFF_F32, {1, 1, 3});
        rig.output("inv_rms", FUSEDIFF_F32, {1, 1, 1});
        rig.output("sum_out", FUSEDIFF_F32, {2, 1, 1, 1});
        rig.output("norm_out", FUSEDIFF_F32, {2, 1, 1, 1, 1});
        rig.integer("num_iters", 1);
        rig.real("hc_eps", 1e-6);
        rig.real("norm_eps", 1e-6);
        for (int64_t i = 0; i < channels; ++i) {
          x.put_number(i, 0.7);
          for (int64_t m = 0; m < 3; ++m) {
            phi.put_number(m * channels + i, sums[first + static_cast<size_t>(m)][static_cast<size_t>(i)]);
          }
        }
        ASSERT_TRUE(paths_agree(rig));
        for (int64_t m = 0; m < 3; ++m) {
          const Sum truth = sum_of(sums[first + static_cast<size_t>(m)], x.number(0));
          EXPECT_LE(error_in_ulp(products.number(m), truth, FUSEDIFF_F32), static_cast<double>(channels) + 8)
              << first + static_cast<size_t>(m) << " of " << channels;
        }
      }
    }
  }
}

// Bounds are of the sum, not of our order: K for sums alone, 2 K with products, K + 8 for those of mhc.
TEST(BoundsTest, OtherOrdersAreWithinTheBounds) {
  for (const int64_t n : {1, 2, 3, 16, 128, 512}) {
    for (const Terms& terms : hard_sums(FUSEDIFF_F32, n)) {
      for (const float weight : {1.0f, 0.7f}) {
        const double factor = static_cast<double>(weight);
        for (const float got : other_orders(terms, weight)) {
          const double error = error_in_ulp(static_cast<double>(got), sum_of(terms, factor), FUSEDIFF_F32);
          EXPECT_LE(error, static_cast<double>(n) * (weight == 1.0f ? 1 : 2));
          EXPECT_LE(error, static_cast<double>(n) + 8);
        }
      }
    }
  }
}

// And they are no wider than they must be by much: a sum that leaves out one of 128 like terms is outside in f32.
TEST(BoundsTest, AMissingTermIsOutside) {
  for (const int64_t n : {2, 8, 128}) {
    Terms terms(static_cast<size_t>(n), 0.1);
    const Sum truth = sum_of(terms, 1);
    terms.pop_back();
    EXPECT_GT(error_in_ulp(static_cast<double>(sum_of(terms, 1).value), truth, FUSEDIFF_F32),
              100 * static_cast<double>(n));
  }
}

// softmax of moe_gating_topk: rows of which the sum of exp is hard to add, or whose logits are far apart.
TEST(BoundsTest, MoeGatingTopkOnHardRows) {
  const std::vector<std::function<double(int64_t)>> rows = {
      [](int64_t) { return 0.1; },
      [](int64_t i) { return i == 0 ? 0 : -24 * std::log(2.0); },      // each below half a unit of the sum
      [](int64_t i) { return i == 511 ? 0 : -23.4 * std::log(2.0); },  // the same, the large one last
      [](int64_t i) { return i % 2 == 0 ? 80 : -80; },
      [](int64_t i) { return i % 3 == 0 ? 0x1p24 : 0x1p24 - 2; },
      [](int64_t i) { return static_cast<double>(i) * -0.03; },
  };
  constexpr int64_t kExperts = 512;
  const int64_t tokens = static_cast<int64_t>(rows.size());
  Rig rig("moe_gating_topk");
  RigTensor& x = rig.input("x", FUSEDIFF_F32, {tokens, kExperts});
  rig.input("bias", FUSEDIFF_F32, {kExperts}).absent = true;
  RigTensor& norm_out = rig.output("norm_out", FUSEDIFF_F32, {tokens, kExperts});
  rig.output("rank", FUSEDIFF_F32, {tokens, kExperts});
  rig.output("expert_idx", FUSEDIFF_I32, {tokens, 4});
  rig.output("y", FUSEDIFF_F32, {tokens, 4});
  for (const auto& [name, value] : {std::pair{"k", 4},
                                    {"k_group", 1},
                                    {"group_count", 1},
                                    {"group_select_mode", 0},
                                    {"renorm", 0},
                                    {"out_flag", 1}}) {
    rig.integer(name, value);
  }
  rig.text("norm_type", "softmax");
  rig.real("routed_scaling_factor", 1);
  rig.real("eps", 1e-20);
  for (int64_t i = 0; i < tokens * kExperts; ++i) {
    x.put_number(i, rows[static_cast<size_t>(i / kExperts)](i % kExperts));
  }
  ASSERT_TRUE(paths_agree(rig));
  for (int64_t t = 0; t < tokens; ++t) {
    long double most = -1e300L, sum = 0;
    for (int64_t e = 0; e < kExperts; ++e) {
      most = std::max<long double>(most, x.number(t * kExperts + e));
    }
    for (int64_t e = 0; e < kExperts; ++e) {
      sum += std::exp(x.number(t * kExperts + e) - most);
    }
    const double ulp = spacing(FUSEDIFF_F32, static_cast<double>(1 / sum));
    for (int64_t e = 0; e < kExperts; ++e) {
      const long double truth = std::exp(x.number(t * kExperts + e) - most) / sum;
      const double error =
          static_cast<double>(std::abs(static_cast<long double>(norm_out.number(t * kExperts + e)) - truth));
      EXPECT_LE(error, (kExperts / 16 + 16) * ulp) << "row " << t << ", expert " << e;
    }
  }
}

}  // namespace
}  // namespace fusediff::builtin
