// For tests of the built-in operators: what a layout, an output on its input, or the other rows of a batch must not
// change, and the unit that bounds are stated in.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "builtin/last_place.h"
#include "builtin/paths_agree.h"

namespace fusediff::builtin {

inline constexpr int32_t kEveryFloat[] = {FUSEDIFF_F32, FUSEDIFF_F16,      FUSEDIFF_BF16,
                                          FUSEDIFF_F64, FUSEDIFF_F8E4M3FN, FUSEDIFF_F8E5M2};

// The dtype of f32 side outputs: f64 where the whole call is.
inline int32_t side_dtype(int32_t dtype) { return dtype == FUSEDIFF_F64 ? FUSEDIFF_F64 : FUSEDIFF_F32; }

// Error of an element in ULP of its dtype at `scale`; 0 where it is not finite (beyond the largest of the dtype).
inline long double ulp_error(kit::RigTensor& out, int64_t at, long double truth, long double scale) {
  const long double got = static_cast<long double>(out.number(at));
  return std::isfinite(got)
             ? std::abs(got - truth) / static_cast<long double>(spacing(out.dtype, static_cast<double>(scale)))
             : 0;
}

// Same shape and values in `to`, whatever the layouts.
inline void copy_values(kit::RigTensor& from, kit::RigTensor& to) {
  for (int64_t i = 0; i < from.count(); ++i) {
    std::memcpy(to.at(i), from.at(i), kit::dtype_bytes(from.dtype));
  }
}

// The rig's own layouts and a dense, a padded and a transposed one give the same bits, on both paths. The inputs may
// repeat elements by stride 0.
inline bool layouts_agree(const kit::Rig& rig) {
  kit::Rig first = rig;
  if (!paths_agree(first)) {
    return false;
  }
  for (const auto& [gap, reversed] : {std::pair{0, false}, std::pair{3, false}, std::pair{1, true}}) {
    kit::Rig other = rig;
    for (size_t t = 0; t < other.inputs().size(); ++t) {
      other.inputs()[t].lay_out(gap, reversed);
      copy_values(first.inputs()[t], other.inputs()[t]);
    }
    for (kit::RigTensor& out : other.outputs()) {
      out.lay_out(gap, reversed);
    }
    if (!paths_agree(other)) {
      return false;
    }
    for (size_t o = 0; o < other.outputs().size(); ++o) {
      kit::RigTensor& out = other.outputs()[o];
      for (int64_t i = 0; !out.absent && i < out.count(); ++i) {
        if (out.bits(i) != first.outputs()[o].bits(i)) {
          ADD_FAILURE() << out.name << "[" << i << "] follows the layout: gap " << gap << ", reversed " << reversed;
          return false;
        }
      }
    }
  }
  return true;
}

// Each row alone gives the bits that it gives among the others, on both paths. rows: the tensors whose first dimension
// are the rows; other outputs are not compared.
inline bool rows_agree(const kit::Rig& rig, const std::vector<std::string>& rows) {
  kit::Rig batch = rig;
  if (!paths_agree(batch)) {
    return false;
  }
  const auto has_rows = [&](const kit::RigTensor& t) {
    return std::find(rows.begin(), rows.end(), t.name) != rows.end();
  };
  for (int64_t row = 0; row < batch.outputs()[0].shape[0]; ++row) {
    kit::Rig alone = rig;
    for (size_t t = 0; t < alone.inputs().size(); ++t) {
      kit::RigTensor& in = alone.inputs()[t];
      if (has_rows(in)) {
        in.shape[0] = 1;
        in.lay_out();
        for (int64_t i = 0; i < in.count(); ++i) {
          std::memcpy(in.at(i), batch.inputs()[t].at(row * in.count() + i), kit::dtype_bytes(in.dtype));
        }
      }
    }
    for (kit::RigTensor& out : alone.outputs()) {
      out.shape[0] = has_rows(out) ? 1 : out.shape[0];
      out.lay_out();
    }
    if (!paths_agree(alone)) {
      return false;
    }
    for (size_t o = 0; o < alone.outputs().size(); ++o) {
      kit::RigTensor& out = alone.outputs()[o];
      for (int64_t i = 0; has_rows(out) && !out.absent && i < out.count(); ++i) {
        if (out.bits(i) != batch.outputs()[o].bits(row * out.count() + i)) {
          ADD_FAILURE() << out.name << ": row " << row << " is another alone";
          return false;
        }
      }
    }
  }
  return true;
}

// A call on a copy of the rig's memory with outputs on inputs, {output, input} each. Both paths give the bits that they
// give apart. `attrs` are those of the rig.
inline bool in_place_agrees(const kit::Rig& rig, const std::string& op, std::vector<fusediff_attr> attrs,
                            const std::vector<std::pair<std::string, std::string>>& on) {
  kit::Rig apart = rig;
  if (!paths_agree(apart)) {
    return false;
  }
  for (const char* path : {"fused", "unfused"}) {
    kit::Rig here = rig;
    std::vector<fusediff_tensor> inputs, outputs;
    const auto raw = [](kit::RigTensor& t) {
      void* data = t.absent || t.count() == 0 ? nullptr : t.memory.data() + kit::RigTensor::kGuard;
      return fusediff_tensor{
          t.name.c_str(), t.shape.data(), t.stride.data(), data, static_cast<int32_t>(t.shape.size()), t.dtype};
    };
    for (kit::RigTensor& in : here.inputs()) {
      inputs.push_back(raw(in));
    }
    for (kit::RigTensor& out : here.outputs()) {
      outputs.push_back(raw(out));
      for (const auto& [output, input] : on) {
        if (output == out.name) {
          kit::RigTensor& in = here.input(input);
          outputs.back().data = in.memory.data() + kit::RigTensor::kGuard;
          outputs.back().stride = in.stride.data();
        }
      }
    }
    fusediff_call call{};
    call.struct_size = sizeof(call);
    call.op = op.c_str();
    call.path = path;
    call.attrs = attrs.data();
    call.attr_count = attrs.size();
    call.inputs = inputs.data();
    call.input_count = inputs.size();
    call.outputs = outputs.data();
    call.output_count = outputs.size();
    size_t bytes = 0;
    EXPECT_EQ(fusediff_target()->workspace_bytes(nullptr, &call, &bytes), FUSEDIFF_OK);
    std::vector<uint8_t> memory(bytes + 64);
    call.workspace = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64);
    call.workspace_size = bytes;
    EXPECT_EQ(fusediff_target()->run(nullptr, &call), FUSEDIFF_OK) << fusediff_target()->last_error();
    for (kit::RigTensor& out : here.outputs()) {
      kit::RigTensor* at = &out;
      for (const auto& [output, input] : on) {
        at = output == out.name ? &here.input(input) : at;
      }
      for (int64_t i = 0; !out.absent && i < out.count(); ++i) {
        if (at->bits(i) != apart.output(out.name).bits(i)) {
          ADD_FAILURE() << path << ": " << out.name << "[" << i << "] is another on its input";
          return false;
        }
      }
    }
  }
  return true;
}

}  // namespace fusediff::builtin
