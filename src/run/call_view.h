// A call as the C ABI wants it. Owns the arrays, points into the Call; reused from run to run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/call.h"
#include "run/buffer.h"
#include "target/fusediff_target.h"

namespace fusediff {

class CallView {
 public:
  // Valid until `call` or the buffers change. Tensors carry the buffers' `data`.
  const fusediff_call& assign(const Call& call, std::string_view path, const std::vector<Buffer>& inputs,
                              const std::vector<Buffer>& outputs);
  const fusediff_call& with_workspace(void* workspace, std::size_t bytes);

 private:
  fusediff_call call_{};
  std::string path_;
  std::vector<fusediff_attr> attrs_;
  std::vector<fusediff_tensor> inputs_;
  std::vector<fusediff_tensor> outputs_;
};

}  // namespace fusediff
