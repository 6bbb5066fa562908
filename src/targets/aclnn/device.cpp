// Contexts and streams. With context=shared every open() of a device has the same AscendCL context, which lives until
// the process ends; its streams are made by each open().
#include "aclnn/device.h"

#include <charconv>
#include <memory>
#include <utility>

#include "kit/failure.h"

namespace fusediff::aclnn {
namespace {

using kit::reject;

// One context for each device of each set of libraries.
AclContext process_context(Library& library, int32_t device) {
  static std::mutex mutex;
  static std::map<std::pair<Library*, int32_t>, AclContext> made;
  const std::lock_guard lock(mutex);
  AclContext& context = made[{&library, device}];
  if (context == nullptr) {
    check(library, library.create_context(&context, device), "aclrtCreateContext");
  }
  return context;
}

bool one_of(std::string_view key, std::string_view value, std::string_view yes, std::string_view no) {
  if (value != yes && value != no) {
    reject("option ", key, " must be ", yes, " or ", no, ", not \"", value, "\"");
  }
  return value == yes;
}

int32_t number(std::string_view value) {
  int32_t read = -1;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), read);
  if (error != std::errc() || end != value.data() + value.size() || read < 0) {
    reject("option device must be a number from 0 on, not \"", value, "\"");
  }
  return read;
}

}  // namespace

Device::Device(std::string_view options) {
  while (!options.empty()) {
    const std::string_view one = options.substr(0, options.find(','));
    options.remove_prefix(std::min(options.size(), one.size() + 1));
    const size_t equals = one.find('=');
    const std::string_view key = one.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? std::string_view() : one.substr(equals + 1);
    if (key == "library_path") {
      folder_ = value;
    } else if (key == "device") {
      device_ = number(value);
    } else if (key == "context") {
      shared_context_ = one_of(key, value, "shared", "own");
    } else if (key == "stream") {
      stream_per_thread_ = one_of(key, value, "per_thread", "shared");
    } else {
      reject("unknown option \"", key, "\": this target has library_path, device, context and stream");
    }
  }
  library_ = &Library::of(folder_);
  create();
}

void Device::create() {
  Library& l = *library_;
  check(l, l.set_device(device_), "aclrtSetDevice");
  if (shared_context_) {
    context_ = process_context(l, device_);
  } else {
    check(l, l.create_context(&context_, device_), "aclrtCreateContext");
  }
  bind();
  if (!stream_per_thread_) {
    check(l, l.create_stream(&stream_), "aclrtCreateStream");
  }
}

Device::~Device() {
  Library& l = *library_;
  l.set_current_context(context_);
  if (stream_ != nullptr) {
    l.destroy_stream(stream_);
  }
  for (const auto& [thread, stream] : streams_) {
    l.destroy_stream(stream);
  }
  if (!shared_context_) {
    l.destroy_context(context_);
  }
}

void Device::bind() { check(*library_, library_->set_current_context(context_), "aclrtSetCurrentContext"); }

AclStream Device::stream() {
  if (!stream_per_thread_) {
    return stream_;
  }
  const std::lock_guard lock(mutex_);
  AclStream& stream = streams_[std::this_thread::get_id()];
  if (stream == nullptr) {
    check(*library_, library_->create_stream(&stream), "aclrtCreateStream");
  }
  return stream;
}

}  // namespace fusediff::aclnn
