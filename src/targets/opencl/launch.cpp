#include "opencl/launch.h"

#include <algorithm>
#include <climits>
#include <span>

#include "kit/failure.h"
#include "opencl/element_type.h"

namespace fusediff::opencl {
namespace {

const ElementType& element_of(const fusediff_tensor& tensor) {
  const ElementType* found = element_type(tensor.dtype);
  if (found == nullptr) kit::unsupported(tensor.name, " has an unknown dtype");
  return *found;
}

size_t size_of(std::string_view expression, int64_t value) {
  if (value < 0) kit::fail("\"", expression, "\" is ", value, ", less than 0");
  return static_cast<size_t>(value);
}

template <class T>
void set(cl_kernel kernel, cl_uint index, const T& value) {
  succeed(clSetKernelArg(kernel, index, sizeof(value), &value), "clSetKernelArg");
}

// Nothing of a call is in flight when it is left, whichever way.
class Finished {
 public:
  explicit Finished(cl_command_queue queue) : queue_(queue) {}
  Finished(const Finished&) = delete;
  Finished& operator=(const Finished&) = delete;
  ~Finished() {
    if (queue_ != nullptr) clFinish(queue_);
  }
  void wait() {
    const cl_command_queue queue = queue_;
    queue_ = nullptr;
    succeed(clFinish(queue), "clFinish");
  }

 private:
  cl_command_queue queue_;
};

}  // namespace

Launch::Launch(const Description& description, const fusediff_call& call) : call_(call) {
  kit::require(call.struct_size >= sizeof(fusediff_call), "the call is of an older layout");
  op_ = description.find(call.op);
  if (op_ == nullptr) kit::unsupported("no operator ", call.op);
  for (const DescribedPath& one : op_->paths) {
    if (one.name == call.path) path_ = &one;
  }
  if (path_ == nullptr) kit::unsupported("operator ", call.op, " has no path ", call.path);
  read_names();
}

const fusediff_tensor& Launch::tensor(const std::string& name) const {
  for (const auto side : {std::span(call_.inputs, call_.input_count), std::span(call_.outputs, call_.output_count)}) {
    for (const fusediff_tensor& one : side) {
      if (name == one.name) return one;
    }
  }
  kit::reject("the call has no tensor ", std::string_view(name));
}

const fusediff_attr& Launch::attribute(const std::string& name) const {
  for (const fusediff_attr& one : std::span(call_.attrs, call_.attr_count)) {
    if (name == one.name) return one;
  }
  kit::reject("the call has no attribute ", std::string_view(name));
}

void Launch::read_names() {
  for (const Attribute& one : op_->attributes) {
    const fusediff_attr& given = attribute(one.name);
    if (one.is_real) {
      kit::require(given.kind == FUSEDIFF_FLOAT, "attribute ", std::string_view(one.name), " must be a float");
    } else if (one.choices.empty()) {
      kit::require(given.kind == FUSEDIFF_INT, "attribute ", std::string_view(one.name), " must be an integer");
      names_[one.name] = given.i;
    } else {
      kit::require(given.kind == FUSEDIFF_STRING, "attribute ", std::string_view(one.name), " must be a string");
      const auto at = std::find(one.choices.begin(), one.choices.end(), given.s);
      kit::require(at != one.choices.end(), "attribute ", std::string_view(one.name), " is no choice");
      names_[one.name] = at - one.choices.begin();
    }
  }
  for (const DimSource& source : op_->dims) {
    if (source.tensor.empty()) {
      names_[source.dim] = attribute(source.attribute).i;
      continue;
    }
    const fusediff_tensor& of = tensor(source.tensor);
    kit::require(static_cast<size_t>(of.rank) > source.axis, of.name, " has rank ", static_cast<int>(of.rank));
    names_[source.dim] = of.shape[source.axis];
  }
}

Launch::Element Launch::element_of(const std::string& type) const {
  const auto macro = op_->types.find(type);
  const int32_t dtype = macro == op_->types.end() ? dtype_named(type) : tensor(macro->second).dtype;
  const ElementType* found = element_type(dtype);
  if (found == nullptr) kit::unsupported(std::string_view(type), " is of an unknown dtype");
  return {dtype, found->bytes};
}

std::vector<size_t> Launch::scratch_offsets(size_t align, size_t& total) const {
  std::vector<size_t> offsets;
  total = 0;
  for (const Scratch& one : op_->scratch) {
    offsets.push_back(total);
    const size_t bytes = size_of(one.count, evaluate(one.count, names_)) * element_of(one.type).bytes;
    total += (std::max<size_t>(bytes, 1) + align - 1) / align * align;
  }
  return offsets;
}

size_t Launch::scratch_bytes(size_t align) const {
  const bool used = std::any_of(path_->steps.begin(), path_->steps.end(), [](const Step& step) {
    return std::any_of(step.args.begin(), step.args.end(),
                       [](const Arg& arg) { return arg.kind == ArgKind::kScratch; });
  });
  size_t total = 0;
  if (used) scratch_offsets(align, total);
  return total;
}

bool Launch::uses_f64() const {
  return std::any_of(op_->types.begin(), op_->types.end(),
                     [&](const auto& type) { return tensor(type.second).dtype == FUSEDIFF_F64; });
}

std::string Launch::macros() const {
  std::string text;
  for (const auto& [macro, name] : op_->types) {
    const fusediff_tensor& of = tensor(name);
    std::string dtype = kit::dtype_name(of.dtype);
    std::transform(dtype.begin(), dtype.end(), dtype.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    text += " -D " + macro + "=" + opencl::element_of(of).opencl + " -D " + macro + "_IS_" + dtype;
  }
  return text;
}

void Launch::pass_real(cl_kernel kernel, cl_uint index, const Arg& arg) const {
  const double value = attribute(arg.text).f;
  const bool is_double = arg.type == "double" || (arg.type != "float" && element_of(arg.type).dtype == FUSEDIFF_F64);
  if (is_double) {
    set(kernel, index, cl_double{value});
  } else {
    set(kernel, index, static_cast<cl_float>(value));
  }
}

void Launch::pass(cl_kernel kernel, cl_uint index, const Arg& arg, PassedPointers& passed, std::byte* scratch,
                  const std::vector<size_t>& offsets) const {
  switch (arg.kind) {
    case ArgKind::kTensor:
      return passed.pass(kernel, index, tensor(arg.text).data);
    case ArgKind::kScratch: {
      const auto at = std::find_if(op_->scratch.begin(), op_->scratch.end(),
                                   [&](const Scratch& one) { return one.name == arg.text; });
      return passed.pass(kernel, index, scratch + offsets[static_cast<size_t>(at - op_->scratch.begin())]);
    }
    case ArgKind::kInt: {
      const int64_t value = evaluate(arg.text, names_);
      if (value < INT_MIN || value > INT_MAX) {
        kit::fail("\"", std::string_view(arg.text), "\" is ", value, ", which an int does not hold: write a long");
      }
      return set(kernel, index, static_cast<cl_int>(value));
    }
    case ArgKind::kLong:
      return set(kernel, index, cl_long{evaluate(arg.text, names_)});
    case ArgKind::kStride: {
      const fusediff_tensor& of = tensor(arg.text);
      kit::require(arg.dim < of.rank, of.name, " has rank ", static_cast<int>(of.rank));
      return set(kernel, index, static_cast<cl_int>(of.stride[arg.dim]));
    }
    case ArgKind::kReal:
      return pass_real(kernel, index, arg);
    case ArgKind::kLocal:
      return succeed(clSetKernelArg(kernel, index, size_of(arg.text, evaluate(arg.text, names_)), nullptr),
                     "clSetKernelArg");
  }
}

// False where there is nothing to launch.
bool Launch::sizes(const Step& step, size_t (&global)[3], size_t (&local)[3]) const {
  bool any = true;
  for (size_t i = 0; i < step.global.size(); ++i) {
    global[i] = size_of(step.global[i], evaluate(step.global[i], names_));
    if (!step.local.empty()) {
      local[i] = std::max<size_t>(size_of(step.local[i], evaluate(step.local[i], names_)), 1);
      global[i] = (global[i] + local[i] - 1) / local[i] * local[i];
    }
    any = any && global[i] != 0;
  }
  return any;
}

void Launch::run(const Where& where) const {
  size_t scratch_total = 0;
  const std::vector<size_t> offsets = scratch_offsets(where.align, scratch_total);
  const std::unique_ptr<PassedPointers> passed = where.memory.begin(where.queue);
  Finished finished(where.queue);
  for (const Step& step : path_->steps) {
    size_t global[3] = {};
    size_t local[3] = {};
    if ((!step.condition.empty() && evaluate(step.condition, names_) == 0) || !sizes(step, global, local)) continue;
    const Program::Lease kernel = where.program.kernel(step.kernel);
    for (size_t i = 0; i < step.args.size(); ++i) {
      pass(kernel.get(), static_cast<cl_uint>(i), step.args[i], *passed, where.scratch, offsets);
    }
    succeed(clEnqueueNDRangeKernel(where.queue, kernel.get(), static_cast<cl_uint>(step.global.size()), nullptr, global,
                                   step.local.empty() ? nullptr : local, 0, nullptr, nullptr),
            "clEnqueueNDRangeKernel of " + step.kernel);
    if (where.wait_each_step) succeed(clFinish(where.queue), "clFinish");
  }
  passed->bring_back();
  finished.wait();
}

}  // namespace fusediff::opencl
