// For tests of the moe_permute family: calls of its four operators with random sizes, and the map from (pick, token) to
// row by the definition.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "kit/rig.h"

namespace fusediff::builtin {

inline constexpr int32_t kPermuteDtypes[] = {FUSEDIFF_F32, FUSEDIFF_F16,      FUSEDIFF_BF16,
                                             FUSEDIFF_F64, FUSEDIFF_F8E4M3FN, FUSEDIFF_F8E5M2};

struct PermuteSizes {
  int64_t tokens, columns, picks, experts, rows;
};

inline PermuteSizes random_permute_sizes(std::mt19937_64& random) {
  PermuteSizes s{};
  s.tokens = static_cast<int64_t>(random() % 20);
  s.columns = 1 + static_cast<int64_t>(random() % 150);
  s.picks = 1 + static_cast<int64_t>(random() % 5);
  s.experts = s.picks + static_cast<int64_t>(random() % 9);
  s.rows = s.tokens * s.picks;
  if (random() % 2 == 0) {
    s.rows = static_cast<int64_t>(random() % static_cast<uint64_t>(s.rows + 1));
  }
  return s;
}

// indices [tokens, picks], distinct in a row.
inline std::vector<int32_t> random_indices(std::mt19937_64& random, const PermuteSizes& s) {
  std::vector<int32_t> indices;
  std::vector<int32_t> experts(static_cast<size_t>(s.experts));
  std::iota(experts.begin(), experts.end(), 0);
  for (int64_t t = 0; t < s.tokens; ++t) {
    std::shuffle(experts.begin(), experts.end(), random);
    indices.insert(indices.end(), experts.begin(), experts.begin() + s.picks);
  }
  return indices;
}

// row_id_map [picks, tokens] by the definition.
inline std::vector<int32_t> map_of(const std::vector<int32_t>& indices, const PermuteSizes& s) {
  std::vector<std::pair<int32_t, int64_t>> order;
  for (size_t flat = 0; flat < indices.size(); ++flat) {
    order.emplace_back(indices[flat], static_cast<int64_t>(flat));
  }
  std::sort(order.begin(), order.end());
  std::vector<int32_t> map(indices.size(), -1);
  for (int64_t row = 0; row < s.rows; ++row) {
    const int64_t flat = order[static_cast<size_t>(row)].second;
    map[static_cast<size_t>(flat % s.picks * s.tokens + flat / s.picks)] = static_cast<int32_t>(row);
  }
  return map;
}

inline kit::Rig permute_rig(int32_t dtype, const PermuteSizes& s) {
  kit::Rig rig("moe_permute");
  rig.input("tokens", dtype, {s.tokens, s.columns});
  rig.input("indices", FUSEDIFF_I32, {s.tokens, s.picks});
  rig.output("row_id_map", FUSEDIFF_I32, {s.picks, s.tokens});
  rig.output("out", dtype, {s.rows, s.columns});
  rig.integer("num_out_tokens", s.rows);
  return rig;
}

inline kit::Rig permute_grad_rig(int32_t dtype, const PermuteSizes& s, bool storage) {
  kit::Rig rig("moe_permute_grad");
  rig.input("grad_out", dtype, {s.rows, s.columns});
  rig.input("row_id_map", FUSEDIFF_I32, {s.picks, s.tokens});
  rig.output("grad_tokens", dtype, {s.tokens, s.columns});
  rig.text("compute", storage ? "storage" : "f32");
  return rig;
}

inline kit::Rig unpermute_rig(int32_t dtype, const PermuteSizes& s, bool storage) {
  kit::Rig rig("moe_unpermute");
  rig.input("in", dtype, {s.rows, s.columns});
  rig.input("row_id_map", FUSEDIFF_I32, {s.picks, s.tokens});
  rig.input("probs", dtype == FUSEDIFF_F64 ? FUSEDIFF_F64 : FUSEDIFF_F32, {s.tokens, s.picks});
  rig.output("out", dtype, {s.tokens, s.columns});
  rig.text("compute", storage ? "storage" : "f32");
  return rig;
}

inline kit::Rig unpermute_grad_rig(int32_t dtype, const PermuteSizes& s) {
  const int32_t wide = dtype == FUSEDIFF_F64 ? FUSEDIFF_F64 : FUSEDIFF_F32;
  kit::Rig rig("moe_unpermute_grad");
  rig.input("grad_out", dtype, {s.tokens, s.columns});
  rig.input("in", dtype, {s.rows, s.columns});
  rig.input("row_id_map", FUSEDIFF_I32, {s.picks, s.tokens});
  rig.input("probs", wide, {s.tokens, s.picks});
  rig.output("grad_in", dtype, {s.rows, s.columns});
  rig.output("grad_probs", wide, {s.tokens, s.picks});
  return rig;
}

template <class T>
void put_all(kit::RigTensor& tensor, const std::vector<T>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    tensor.put(static_cast<int64_t>(i), values[i]);
  }
}

// Layouts first (they reset the memory), values then; probabilities in [0, 1), the map by the definition.
inline void randomise(kit::Rig& rig, std::mt19937_64& random, const PermuteSizes& s, bool tame) {
  const std::vector<int32_t> indices = random_indices(random, s);
  for (kit::RigTensor& in : rig.inputs()) {
    const bool index = in.name == "row_id_map" || in.name == "indices";
    kit::random_layout(in, random, !index);
    if (in.name == "row_id_map") {
      put_all(in, map_of(indices, s));
    } else if (in.name == "indices") {
      put_all(in, indices);
    } else if (in.name == "probs") {
      for (int64_t i = 0; i < in.count(); ++i) {
        in.put_number(i, static_cast<double>(random() % 65536) / 65536);
      }
      in.absent = random() % 3 == 0;
    } else {
      kit::random_values(in, random, 3.0, tame);
    }
  }
  for (kit::RigTensor& out : rig.outputs()) {
    kit::random_layout(out, random, false);
  }
}

}  // namespace fusediff::builtin
