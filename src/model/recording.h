// The runs that a finding is about, as they are made: every call with its layout, and the bytes of everything that goes
// in and came out. What somebody needs to make them again without fusediff.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/call.h"
#include "model/experiment.h"
#include "model/safetensors.h"
#include "model/tensor.h"

namespace fusediff {

// One call of one path, in the spelling of that side's own record: what run() is given.
struct RecordedCall {
  std::string op;
  std::string path;
  std::vector<CallAttr> attrs;      // every attribute, in schema order
  std::vector<Tensor> inputs;       // likewise, absent ones too
  std::vector<Tensor> outputs;      // likewise, those that are not wanted too
  std::vector<std::string> stored;  // [inputs]: its name in Recording::inputs; "" where absent
  bool pinned = false;              // on one CPU only
};

// Elements that hold the same bits: of one output in two runs of the same path, or twice in one run.
struct SameBits {
  std::string output;
  std::array<int, 2> call{};  // indices into Recording::calls[Side::kTarget], in the order of Finding::columns
  std::array<std::vector<std::int64_t>, 2> elements{};  // logical row-major indices, of equal number; empty: all
};

struct Recording {
  Experiment experiment;  // its kind, count, rounds and seed; its calls stand below
  // [Side]: the case's own call first, then those of its experiment in their order. In a relation: the runs of the
  // target side's path that are laid beside each other, the one that the others are held to first. The against side:
  // empty where the experiment looks at one path (all but pair and gradient).
  std::array<std::vector<RecordedCall>, 2> calls;
  std::vector<SameBits> same;  // of a relation
  // Logical elements: "x"; "calls/i/x" of calls[Side::kTarget][1 + i] (in a relation only where it is not "x" again).
  std::vector<StoredTensor> inputs;
  // As seen once: "target/y", "against/y", and "truth/y" in f64 where there is one. In a relation the two are the
  // columns of the finding, each put together from its runs as the finding lays them out. Where calls share a context:
  // what each gives alone, "target/y" and "target/calls/i/y". Stages that the call itself does not ask for too.
  std::vector<StoredTensor> outputs;
};

}  // namespace fusediff
