// See context.h.
#include "onednn/context.h"

#include <cstdio>
#include <thread>

namespace fusediff::onednn {
namespace {

using namespace kit;

constexpr size_t kNoteLength = 200;

thread_local char note[kNoteLength + 1] = "";

void append_tensor(std::string& key, const fusediff_tensor& tensor) {
  key += line_of(" ", tensor.name, ":", tensor.dtype, tensor.data == nullptr ? "-" : "+");
  for (int d = 0; d < tensor.rank; ++d) {
    key += line_of("x", tensor.shape[d]);
  }
}

// Equal for calls that a plan serves alike.
std::string key_of(const fusediff_call& call) {
  std::string key = line_of(call.op, " ", call.path);
  for (size_t i = 0; i < call.attr_count; ++i) {
    const fusediff_attr& attr = call.attrs[i];
    char real[32];
    std::snprintf(real, sizeof(real), "%a", attr.f);
    key += line_of(" ", attr.name, "=", attr.i, "/", real, "/", attr.kind == FUSEDIFF_STRING ? attr.s : "");
  }
  for (size_t i = 0; i < call.input_count; ++i) {
    append_tensor(key, call.inputs[i]);
  }
  for (size_t i = 0; i < call.output_count; ++i) {
    append_tensor(key, call.outputs[i]);
  }
  return key;
}

bool any_empty(const fusediff_tensor* tensors, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (Tensor(tensors[i]).count() == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

Context::Context(std::string_view options) : options_(parse_options(options)) { claim_isa(options_.isa); }

std::shared_ptr<const Plan> Context::plan(const Call& call, Build build) {
  const fusediff_call& raw = call.raw();
  if (options_.skip_empty && (any_empty(raw.inputs, raw.input_count) || any_empty(raw.outputs, raw.output_count))) {
    unsupported("a tensor is empty, which the option empty=skip leaves out");
  }
  set_threads(options_.threads);
  std::string key = key_of(raw);
  if (!options_.shared_primitive) {
    key += line_of(" ", static_cast<int64_t>(std::hash<std::thread::id>()(std::this_thread::get_id())));
  }
  {
    const std::lock_guard lock(mutex_);
    const auto kept = plans_.find(key);
    if (kept != plans_.end()) {
      return kept->second;
    }
  }
  // Without the lock: where oneDNN dies in here, and a signal handler leaves by a jump, other threads still go on.
  Plan made(options_);
  build(call, made);
  const std::lock_guard lock(mutex_);
  return plans_.try_emplace(key, std::make_shared<const Plan>(std::move(made))).first->second;
}

void guarded(const std::function<void()>& f) {
  try {
    f();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) {
      unsupported("oneDNN: ", error.what());
    }
    if (error.status == dnnl_invalid_arguments) {
      reject("oneDNN: ", error.what());
    }
    fail("oneDNN: ", error.what());
  }
}

void set_note(std::string_view text) {
  std::snprintf(note, sizeof(note), "%.*s", static_cast<int>(text.substr(0, kNoteLength).size()), text.data());
}

}  // namespace fusediff::onednn

// What the calling thread's last run used: names of implementations, in order. One line, never null.
extern "C" FUSEDIFF_EXPORT const char* fusediff_note(void) { return fusediff::onednn::note; }
