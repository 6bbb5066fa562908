// From a call and its description to kernels in a queue: the dims of the call, where scratch lies, arguments, sizes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fusediff_target.h"
#include "opencl/description.h"
#include "opencl/memory.h"

namespace fusediff::opencl {

// One call of one path, looked up. Throws kit::Failure: UNSUPPORTED where operator or path are not described, REJECTED
// where the call is not of the record's form.
class Launch {
 public:
  Launch(const Description& description, const fusediff_call& call);

  // Each array begins at a multiple of `align`.
  size_t scratch_bytes(size_t align) const;
  bool uses_f64() const;
  // Macros for the compiler of the kernels: -D T=float -D T_IS_F32 for each of the operator's types.
  std::string macros() const;

  // Where a call runs. scratch: scratch_bytes(align) bytes of device memory.
  struct Where {
    Program& program;
    Memory& memory;
    cl_command_queue queue;
    std::byte* scratch;
    size_t align;
    bool wait_each_step;
  };
  // Enqueues the steps and waits for them, for each by itself or once.
  void run(const Where& where) const;

 private:
  struct Element {
    int32_t dtype;
    size_t bytes;
  };

  const fusediff_tensor& tensor(const std::string& name) const;
  const fusediff_attr& attribute(const std::string& name) const;
  void read_names();
  Element element_of(const std::string& type) const;
  std::vector<size_t> scratch_offsets(size_t align, size_t& total) const;
  void pass(cl_kernel kernel, cl_uint index, const Arg& arg, PassedPointers& passed, std::byte* scratch,
            const std::vector<size_t>& offsets) const;
  void pass_real(cl_kernel kernel, cl_uint index, const Arg& arg) const;
  bool sizes(const Step& step, size_t (&global)[3], size_t (&local)[3]) const;

  const fusediff_call& call_;
  const DescribedOperator* op_ = nullptr;
  const DescribedPath* path_ = nullptr;
  Names names_;
};

}  // namespace fusediff::opencl
