// A device with its OpenCL context and the programs built for it. One of each a process, shared by every context of the
// target and kept until the process ends: kernels are compiled once, and open() stays cheap. Not here: queues, memory.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "opencl/handle.h"

namespace fusediff::opencl {

// A built program. Its kernels are lent: clSetKernelArg on one kernel from two threads is a race.
class Program {
 public:
  explicit Program(cl_program program) : program_(program) {}

  class Lease {
   public:
    Lease(Program& program, std::string name, Kernel kernel)
        : program_(program), name_(std::move(name)), kernel_(std::move(kernel)) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { program_.give_back(name_, std::move(kernel_)); }
    cl_kernel get() const { return kernel_.get(); }

   private:
    Program& program_;
    std::string name_;
    Kernel kernel_;
  };

  // FAILED where the program has no kernel of that name. After it is enqueued a kernel may be given back: the command
  // has its own copy of the arguments.
  Lease kernel(const std::string& name);

 private:
  void give_back(const std::string& name, Kernel kernel);

  cl_program program_;
  std::mutex mutex_;
  std::map<std::string, std::vector<Kernel>> free_;
};

class Device {
 public:
  // FAILED, in one line, where there is no such platform or device.
  static Device& get(int platform, int device);

  cl_context context() const { return context_; }
  cl_device_id id() const { return id_; }
  bool has_svm() const { return has_svm_; }
  bool has_f64() const { return has_f64_; }
  size_t base_align() const { return base_align_; }  // bytes: where a sub-buffer may begin

  // The file, compiled with these options; FAILED with the compiler's first error where that is not possible.
  Program& program(const std::string& file, const std::string& options, bool contract);

 private:
  explicit Device(cl_device_id id);

  cl_device_id id_;
  cl_context context_ = nullptr;
  bool has_svm_ = false;
  bool has_f64_ = false;
  size_t base_align_ = 0;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Program>> programs_;
};

}  // namespace fusediff::opencl
