#include "engine/record_parts.h"

#include <algorithm>

#include "model/expand.h"

namespace fusediff {
namespace {

StoredTensor stored_tensor(std::string name, const Tensor& tensor, Bytes bytes) {
  return {std::move(name), tensor.dtype, tensor.shape, std::move(bytes)};
}

bool same_content(const StoredTensor& a, const StoredTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes;
}

bool is_named(const std::string& stored, const std::string& name) {
  return stored == name || stored.ends_with("/" + name);
}

}  // namespace

std::string prefix_of(Side side) { return side == Side::kTarget ? "target/" : "against/"; }

RecordedCall recorded_call(const Call& call, const std::string& path) {
  RecordedCall made;
  made.op = call.op->name;
  made.path = path;
  made.attrs = call.attrs;
  made.inputs = call.inputs;
  made.outputs = call.outputs;
  made.stored.resize(call.inputs.size());
  return made;
}

void store_inputs(const Call& call, std::span<const std::span<const std::byte>> views, const std::string& prefix,
                  RecordedCall& made, Recording& recording) {
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& tensor = call.inputs[i];
    if (!tensor.present) continue;
    made.stored[i] = prefix + tensor.name;
    recording.inputs.push_back(stored_tensor(made.stored[i], tensor, expanded(tensor, views[i])));
  }
}

void store_other_inputs(const Call& call, std::span<const std::span<const std::byte>> views, const std::string& prefix,
                        RecordedCall& made, Recording& recording) {
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& tensor = call.inputs[i];
    if (!tensor.present) continue;
    StoredTensor other = stored_tensor(prefix + tensor.name, tensor, expanded(tensor, views[i]));
    const auto same = std::find_if(recording.inputs.begin(), recording.inputs.end(), [&](const StoredTensor& known) {
      return is_named(known.name, tensor.name) && same_content(known, other);
    });
    made.stored[i] = same != recording.inputs.end() ? same->name : other.name;
    if (same == recording.inputs.end()) recording.inputs.push_back(std::move(other));
  }
}

void store_outputs(const Call& call, const std::vector<Bytes>& outputs, const std::vector<bool>& given,
                   const std::string& prefix, Recording& recording) {
  for (std::size_t o = 0; o < call.outputs.size() && o < outputs.size(); ++o) {
    const Tensor& tensor = call.outputs[o];
    if (!tensor.present || (!given.empty() && !given[o])) continue;
    recording.outputs.push_back(stored_tensor(prefix + tensor.name, tensor, outputs[o]));
  }
}

}  // namespace fusediff
