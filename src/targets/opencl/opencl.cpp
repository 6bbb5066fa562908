// The target "opencl": operators out of a description file and a file of OpenCL kernels. This file is the table of
// functions, what they throw turned into statuses, and which description is used.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include "fusediff_target.h"
#include "kit/failure.h"
#include "opencl/context.h"
#include "opencl/description.h"

namespace fusediff::opencl {
namespace {

// Names the user's own description; read when it is first needed.
constexpr char kOpsVariable[] = "FUSEDIFF_OPENCL_OPS";

thread_local char error_text[512] = "";

template <class F>
fusediff_status guarded(F&& f) noexcept {
  const auto note = [](const char* text) { std::snprintf(error_text, sizeof(error_text), "%s", text); };
  try {
    f();
    return FUSEDIFF_OK;
  } catch (const kit::Failure& failure) {
    note(failure.what());
    return failure.status();
  } catch (const std::bad_alloc&) {
    note("out of memory");
  } catch (const std::exception& other) {
    note(other.what());
  }
  return FUSEDIFF_FAILED;
}

// The examples lie in a folder beside this library.
std::string default_description() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<void*>(&fusediff_target), &here) == 0 || here.dli_fname == nullptr) {
    kit::fail("the library does not know where it lies: name a description by ", kOpsVariable);
  }
  const std::string file = here.dli_fname;
  const size_t slash = file.rfind('/');
  return (slash == std::string::npos ? "." : file.substr(0, slash)) + "/opencl/examples.json";
}

struct Loaded {
  Description description;
  fusediff_status status = FUSEDIFF_OK;
  std::string error;
};

const Loaded& loaded() {
  static const Loaded one = [] {
    Loaded made;
    made.status = guarded([&] {
      const char* own = std::getenv(kOpsVariable);
      made.description = load_description(own != nullptr && *own != '\0' ? own : default_description());
    });
    if (made.status != FUSEDIFF_OK) made.error = error_text;
    return made;
  }();
  return one;
}

// schema() has no way to say why there is none: a description that is refused is what no reader of schemas takes, and
// the reader shows it.
const char* schema() {
  if (loaded().status == FUSEDIFF_OK) return loaded().description.schema.c_str();
  static const std::string refused = [] {
    std::string text;
    for (const char c : loaded().error) text += c == '"' || c == '\\' ? '\'' : c < ' ' ? ' ' : c;
    return "{\"fusediff_schema\": 1, \"operators\": [], \"" + text + "\": 0}";
  }();
  return refused.c_str();
}

fusediff_status open(const char* options, void** context) {
  return guarded([&] {
    if (loaded().status != FUSEDIFF_OK) kit::fail(std::string_view(loaded().error));
    *context = new Context(loaded().description, options == nullptr ? "" : options);
  });
}

Context& of(void* context) { return *static_cast<Context*>(context); }

fusediff_status workspace_bytes(void* context, const fusediff_call* call, size_t* bytes) {
  return guarded([&] { *bytes = of(context).workspace_bytes(*call); });
}

fusediff_status run(void* context, const fusediff_call* call) {
  return guarded([&] { of(context).run(*call); });
}

void* alloc(void* context, size_t bytes) {
  void* memory = nullptr;
  guarded([&] { memory = of(context).alloc(bytes); });
  return memory;
}

void release(void* context, void* memory) {
  guarded([&] { of(context).release(memory); });
}

fusediff_status write(void* context, void* memory, const void* host, size_t bytes) {
  return guarded([&] { of(context).write(memory, host, bytes); });
}

fusediff_status read(void* context, void* host, const void* memory, size_t bytes) {
  return guarded([&] { of(context).read(host, memory, bytes); });
}

constexpr fusediff_target_v1 kTable{
    FUSEDIFF_ABI_VERSION,
    sizeof(fusediff_target_v1),
    "opencl",
    "0.1.0",
    schema,
    open,
    [](void* context) { delete static_cast<Context*>(context); },
    workspace_bytes,
    run,
    [] { return static_cast<const char*>(error_text); },
    alloc,
    release,
    write,
    read,
};

}  // namespace
}  // namespace fusediff::opencl

extern "C" FUSEDIFF_EXPORT const fusediff_target_v1* fusediff_target(void) { return &fusediff::opencl::kTable; }
