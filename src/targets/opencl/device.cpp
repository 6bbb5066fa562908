#include "opencl/device.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "kit/failure.h"

namespace fusediff::opencl {
namespace {

// From cl_khr_icd: the loader found no platform at all.
constexpr cl_int kPlatformNotFound = -1001;

const char* error_name(cl_int code) {
  switch (code) {
    case CL_DEVICE_NOT_FOUND:
      return "CL_DEVICE_NOT_FOUND";
    case CL_DEVICE_NOT_AVAILABLE:
      return "CL_DEVICE_NOT_AVAILABLE";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
      return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case CL_OUT_OF_RESOURCES:
      return "CL_OUT_OF_RESOURCES";
    case CL_OUT_OF_HOST_MEMORY:
      return "CL_OUT_OF_HOST_MEMORY";
    case CL_BUILD_PROGRAM_FAILURE:
      return "CL_BUILD_PROGRAM_FAILURE";
    case CL_MISALIGNED_SUB_BUFFER_OFFSET:
      return "CL_MISALIGNED_SUB_BUFFER_OFFSET";
    case CL_INVALID_VALUE:
      return "CL_INVALID_VALUE";
    case CL_INVALID_BUILD_OPTIONS:
      return "CL_INVALID_BUILD_OPTIONS";
    case CL_INVALID_KERNEL_NAME:
      return "CL_INVALID_KERNEL_NAME";
    case CL_INVALID_ARG_INDEX:
      return "CL_INVALID_ARG_INDEX";
    case CL_INVALID_ARG_VALUE:
      return "CL_INVALID_ARG_VALUE";
    case CL_INVALID_ARG_SIZE:
      return "CL_INVALID_ARG_SIZE";
    case CL_INVALID_KERNEL_ARGS:
      return "CL_INVALID_KERNEL_ARGS";
    case CL_INVALID_WORK_GROUP_SIZE:
      return "CL_INVALID_WORK_GROUP_SIZE";
    case CL_INVALID_WORK_ITEM_SIZE:
      return "CL_INVALID_WORK_ITEM_SIZE";
    case CL_INVALID_GLOBAL_WORK_SIZE:
      return "CL_INVALID_GLOBAL_WORK_SIZE";
    case CL_INVALID_BUFFER_SIZE:
      return "CL_INVALID_BUFFER_SIZE";
    case kPlatformNotFound:
      return "no platform is installed";
    default:
      return "OpenCL error";
  }
}

cl_device_id find_device(int platform, int device) {
  cl_uint count = 0;
  const cl_int found = clGetPlatformIDs(0, nullptr, &count);
  if (found == kPlatformNotFound || (found == CL_SUCCESS && count == 0)) {
    kit::fail("no OpenCL device: no platform is installed (package pocl-opencl-icd makes the CPU one)");
  }
  succeed(found, "clGetPlatformIDs");
  if (platform >= static_cast<int>(count)) {
    kit::fail("no OpenCL device: there is no platform ", platform, ", there are ", static_cast<int>(count));
  }
  std::vector<cl_platform_id> platforms(count);
  succeed(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  const cl_platform_id chosen = platforms[static_cast<size_t>(platform)];
  cl_uint devices = 0;
  const cl_int listed = clGetDeviceIDs(chosen, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices);
  if (listed == CL_DEVICE_NOT_FOUND || (listed == CL_SUCCESS && device >= static_cast<int>(devices))) {
    kit::fail("no OpenCL device: platform ", platform, " has no device ", device, ", it has ",
              static_cast<int>(devices));
  }
  succeed(listed, "clGetDeviceIDs");
  std::vector<cl_device_id> ids(devices);
  succeed(clGetDeviceIDs(chosen, CL_DEVICE_TYPE_ALL, devices, ids.data(), nullptr), "clGetDeviceIDs");
  return ids[static_cast<size_t>(device)];
}

template <class T>
T info(cl_device_id id, cl_device_info what) {
  T value{};
  return clGetDeviceInfo(id, what, sizeof(value), &value, nullptr) == CL_SUCCESS ? value : T{};
}

std::string contents(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) kit::fail(std::string_view(file), ": cannot be read");
  return std::string{std::istreambuf_iterator<char>(stream), {}};
}

// The first line of the compiler's text that speaks of an error, else its first line.
std::string first_error(cl_program program, cl_device_id id) {
  size_t size = 0;
  clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  std::istringstream lines(log.c_str());
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("error") != std::string::npos) return line;
    if (first.empty()) first = line;
  }
  return first;
}

}  // namespace

void succeed(cl_int code, std::string_view what) {
  if (code != CL_SUCCESS) kit::fail(what, ": ", error_name(code), " (", static_cast<int>(code), ")");
}

Program::Lease Program::kernel(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    std::vector<Kernel>& free = free_[name];
    if (!free.empty()) {
      Kernel kernel = std::move(free.back());
      free.pop_back();
      return Lease(*this, name, std::move(kernel));
    }
  }
  cl_int code = CL_SUCCESS;
  Kernel made(clCreateKernel(program_, name.c_str(), &code));
  if (code == CL_INVALID_KERNEL_NAME) kit::fail("the kernels have none named ", std::string_view(name));
  succeed(code, "clCreateKernel of " + name);
  return Lease(*this, name, std::move(made));
}

void Program::give_back(const std::string& name, Kernel kernel) {
  const std::lock_guard lock(mutex_);
  free_[name].push_back(std::move(kernel));
}

Device& Device::get(int platform, int device) {
  // Never destroyed: threads of the OpenCL library may outlive static objects of this one.
  static auto& all = *new std::map<std::pair<int, int>, std::unique_ptr<Device>>();
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Device>& here = all[{platform, device}];
  if (here == nullptr) here.reset(new Device(find_device(platform, device)));
  return *here;
}

Device::Device(cl_device_id id) : id_(id) {
  cl_int code = CL_SUCCESS;
  context_ = clCreateContext(nullptr, 1, &id_, nullptr, nullptr, &code);
  succeed(code, "clCreateContext");
  has_svm_ =
      (info<cl_device_svm_capabilities>(id_, CL_DEVICE_SVM_CAPABILITIES) & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0;
  has_f64_ = info<cl_device_fp_config>(id_, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  base_align_ = info<cl_uint>(id_, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
}

Program& Device::program(const std::string& file, const std::string& options, bool contract) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Program>& here = programs_[file + "\n" + options + (contract ? "\n1" : "\n0")];
  if (here != nullptr) return *here;
  std::string source = contents(file);
  if (!contract) source = "#pragma OPENCL FP_CONTRACT OFF\n#line 1\n" + source;
  const char* text = source.c_str();
  cl_int code = CL_SUCCESS;
  const Handle<cl_program, clReleaseProgram> made(clCreateProgramWithSource(context_, 1, &text, nullptr, &code));
  succeed(code, "clCreateProgramWithSource");
  const cl_int built = clBuildProgram(made.get(), 1, &id_, options.c_str(), nullptr, nullptr);
  if (built == CL_BUILD_PROGRAM_FAILURE) {
    const std::string why = first_error(made.get(), id_);
    kit::fail(std::string_view(file), " does not compile: ", std::string_view(why));
  }
  succeed(built, "clBuildProgram of " + file);
  succeed(clRetainProgram(made.get()), "clRetainProgram");
  here = std::make_unique<Program>(made.get());
  return *here;
}

}  // namespace fusediff::opencl
