// A plan: the primitives of one path for one kind of call (operator, path, attributes, shapes, dtypes), in order, with
// where each finds its tensors. Made without reading a tensor; executed for any call of that kind, from any number of
// threads at once. Not here: which primitives (the operators), which plans are kept (context.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kit/call.h"
#include "onednn/options.h"

namespace fusediff::onednn {

using dnnl::memory;
using Dims = memory::dims;
using Type = memory::data_type;

// The CPU.
const dnnl::engine& engine();

// UNSUPPORTED where oneDNN has no such type.
Type type_of(const kit::Tensor& tensor);

// A tensor of the call or one between two primitives.
struct Operand {
  enum class Place { kInput, kOutput, kBetween };

  Place place;
  size_t index;  // of the call's inputs or outputs, or of Plan's tensors between
  memory::desc desc;

  // The same memory with other dims of as many elements, dense.
  Operand as(const Dims& dims) const;
  Dims dims() const { return desc.dims(); }
};

struct Argument {
  int name;  // DNNL_ARG_*
  Operand operand;
};

class Plan {
 public:
  explicit Plan(const Options& options) : options_(options) {}

  // Tensors of the call; dense. REJECTED where there is none of that name.
  Operand input(const kit::Call& call, std::string_view name) const;
  Operand output(const kit::Call& call, std::string_view name) const;
  // False for one that is absent or empty.
  static bool has(const kit::Call& call, std::string_view name) { return call.input(name).present(); }
  // Dense, in the workspace.
  Operand between(const Dims& dims, Type type);

  // Attributes with the scratchpad mode of the options and these post-ops.
  dnnl::primitive_attr attributes(const dnnl::post_ops& post_ops = {}) const;

  // The next primitive.
  void add(const dnnl::primitive_desc_base& description, std::vector<Argument> arguments);

  size_t workspace_bytes() const;
  // Runs the primitives; the outputs are complete when it returns.
  void execute(const kit::Call& call) const;

  // Names of the implementations, in order: "brg:avx512_core; jit:avx512_core".
  const std::string& implementations() const { return implementations_; }

 private:
  struct Step {
    dnnl::primitive primitive;
    memory::desc scratchpad;
    std::vector<Argument> arguments;
  };

  Options options_;
  std::vector<Step> steps_;
  std::vector<memory::desc> between_;
  size_t scratchpad_bytes_ = 0;
  std::string implementations_;
};

}  // namespace fusediff::onednn
