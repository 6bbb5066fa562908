#include "run/one_run.h"

#include <algorithm>
#include <csignal>
#include <limits>
#include <new>
#include <utility>

#include "model/dtype.h"

namespace fusediff {
namespace {

void start_buffer(Buffer& buffer, std::string_view name, const Tensor* tensor, bool is_output) {
  buffer.name = name;
  buffer.tensor = tensor;
  buffer.is_output = is_output;
  buffer.under = -1;
  buffer.slot = nullptr;
  buffer.first = nullptr;
  buffer.bytes = 0;
  buffer.data = nullptr;
  buffer.target_block = nullptr;
}

bool has_memory(const Buffer& buffer) { return buffer.bytes > 0; }

// Bytes from the first to behind the last element; the largest number where that is beyond any memory.
std::size_t bytes_of(const Tensor& tensor) {
  constexpr std::int64_t kMost = std::int64_t{1} << 56;
  const std::int64_t elements = tensor.present ? extent(tensor) : 0;
  if (elements > kMost || elements < 0) return std::numeric_limits<std::size_t>::max() / 8;
  return static_cast<std::size_t>(elements) * size_of(tensor.dtype);
}

}  // namespace

void start_execution(Execution& execution, Fills fills) {
  execution.fills = fills;
  execution.ending = Ending::kOk;
  execution.phase = Phase::kRun;
  execution.signal = 0;
  execution.status = FUSEDIFF_OK;
  execution.message.clear();
  execution.note.clear();
  execution.printed.clear();
  execution.guard_hit.reset();
  execution.overruns.clear();
  execution.changed_inputs.clear();
  execution.workspace_bytes = 0;
  execution.nanoseconds = 0;
}

OneRun::OneRun(const RunRequest& request, const RunLimits& limits, Arena& arena, Workbench& bench, ForeignCalls& calls,
               Execution& execution)
    : request_(request),
      call_(*request.call),
      limits_(limits),
      arena_(arena),
      bench_(bench),
      calls_(calls),
      execution_(execution),
      own_memory_(request.target->owns_memory()) {}

bool OneRun::fail(Ending ending, Phase phase, std::string message) {
  execution_.ending = ending;
  execution_.phase = phase;
  execution_.message = std::move(message);
  return false;
}

template <typename Visit>
void OneRun::each_buffer(Visit visit) {
  for (Buffer& buffer : bench_.inputs) {
    visit(buffer, buffer.under < 0 ? nullptr : &bench_.outputs[static_cast<std::size_t>(buffer.under)]);
  }
  for (Buffer& buffer : bench_.outputs) visit(buffer, nullptr);
  visit(bench_.workspace, nullptr);
}

// Sizes and layouts of all tensors, and which lies on which. Takes no memory.
bool OneRun::lay_out() {
  bench_.inputs.resize(call_.inputs.size());
  bench_.outputs.resize(call_.outputs.size());
  start_buffer(bench_.workspace, "workspace", nullptr, false);
  for (std::size_t i = 0; i < call_.inputs.size(); ++i) {
    Buffer& buffer = bench_.inputs[i];
    start_buffer(buffer, call_.inputs[i].name, &call_.inputs[i], false);
    buffer.bytes = bytes_of(call_.inputs[i]);
    buffer.layout.assign(call_.inputs[i], false);
    tensor_bytes_ = std::min(tensor_bytes_ + buffer.bytes, std::numeric_limits<std::size_t>::max() / 2);
  }
  for (std::size_t i = 0; i < call_.outputs.size(); ++i) {
    Buffer& buffer = bench_.outputs[i];
    const int on = call_.outputs[i].on;
    start_buffer(buffer, call_.outputs[i].name, &call_.outputs[i], true);
    buffer.bytes = bytes_of(call_.outputs[i]);
    buffer.layout.assign(call_.outputs[i], true);
    if (has_memory(buffer) && on >= 0 && has_memory(bench_.inputs[static_cast<std::size_t>(on)])) {
      bench_.inputs[static_cast<std::size_t>(on)].under = static_cast<int>(i);
    } else {
      tensor_bytes_ = std::min(tensor_bytes_ + buffer.bytes, std::numeric_limits<std::size_t>::max() / 2);
    }
  }
  if (tensor_bytes_ <= limits_.bytes) return true;
  return fail(
      Ending::kMemory, Phase::kRun,
      "the tensors take " + std::to_string(tensor_bytes_) + " bytes, the cap is " + std::to_string(limits_.bytes));
}

bool OneRun::inputs_fit() {
  for (std::size_t i = 0; i < call_.inputs.size(); ++i) {
    const std::size_t stored = call_.inputs[i].present ? stored_bytes(call_.inputs[i]) : 0;
    const std::size_t given = i < request_.inputs.size() ? request_.inputs[i].size() : 0;
    if (given == stored) continue;
    return fail(Ending::kFailed, Phase::kRun,
                "the runner was given " + std::to_string(given) + " bytes for " + call_.inputs[i].name +
                    ", which stores " + std::to_string(stored));
  }
  return true;
}

std::optional<Place> OneRun::forced_place(std::string_view name) const {
  if (!request_.middle.empty() && name == request_.middle) return Place::kMiddle;
  return std::nullopt;
}

bool OneRun::take(Context& context, Buffer& buffer, const Placed& placed) {
  const std::size_t room = own_memory_ ? block_bytes(placed) : room_for(placed);
  buffer.slot = arena_.acquire(room);
  if (buffer.slot == nullptr) {
    return fail(Ending::kMemory, Phase::kRun,
                "the system has no " + std::to_string(room) + " bytes for " + std::string(buffer.name));
  }
  if (!own_memory_) {
    const auto begin = reinterpret_cast<std::uintptr_t>(buffer.slot->begin());
    buffer.first = buffer.slot->begin() + (address_in(placed, begin, begin + buffer.slot->size()) - begin);
    buffer.data = buffer.first;
    return true;
  }
  const std::size_t size = buffer.slot->size();
  buffer.target_block = context.memory.acquire(calls_, context.handle, size, buffer.name);
  if (buffer.target_block == nullptr) return false;
  const std::size_t offset = offset_in_block(placed, reinterpret_cast<std::uintptr_t>(buffer.target_block));
  buffer.first = buffer.slot->begin() + offset;
  buffer.data = static_cast<std::byte*>(buffer.target_block) + offset;
  return true;
}

bool OneRun::send(Context& context, const Buffer& buffer) {
  if (!own_memory_) return true;
  return calls_.write(context.handle, buffer.target_block, buffer.slot->begin(), buffer.slot->size(), buffer.name);
}

bool OneRun::take_tensors(Context& context) {
  for (std::size_t i = 0; i < bench_.inputs.size(); ++i) {
    Buffer& buffer = bench_.inputs[i];
    if (!has_memory(buffer)) continue;
    Placed place = placed(*buffer.tensor, forced_place(buffer.name));
    if (buffer.under >= 0) {
      const Buffer& over = bench_.outputs[static_cast<std::size_t>(buffer.under)];
      const Placed above = placed(*over.tensor, forced_place(over.name));
      place.align = std::max(place.align, above.align);
      if (above.place == Place::kMiddle) place.place = Place::kMiddle;
      place.bytes = buffer.bytes = std::max(buffer.bytes, over.bytes);
    }
    if (!take(context, buffer, place)) return false;
    fill_input(buffer, request_.inputs[i], execution_.fills.guard);
    if (!send(context, buffer)) return false;
  }
  for (std::size_t i = 0; i < bench_.outputs.size(); ++i) {
    Buffer& buffer = bench_.outputs[i];
    if (!has_memory(buffer)) continue;
    const int on = buffer.tensor->on;
    if (on >= 0 && has_memory(bench_.inputs[static_cast<std::size_t>(on)])) {
      buffer.first = bench_.inputs[static_cast<std::size_t>(on)].first;
      buffer.data = bench_.inputs[static_cast<std::size_t>(on)].data;
      continue;
    }
    if (!take(context, buffer, placed(*buffer.tensor, forced_place(buffer.name)))) return false;
    fill_constant(buffer, execution_.fills.output, execution_.fills.guard);
    if (!send(context, buffer)) return false;
  }
  return true;
}

bool OneRun::take_workspace(Context& context, std::size_t bytes) {
  execution_.workspace_bytes = bytes;
  if (bytes > limits_.bytes - tensor_bytes_) {
    return fail(Ending::kMemory, Phase::kWorkspace,
                "asks for " + std::to_string(bytes) + " bytes of workspace; with tensors of " +
                    std::to_string(tensor_bytes_) + " bytes the cap is " + std::to_string(limits_.bytes));
  }
  if (bytes == 0) return true;
  Buffer& buffer = bench_.workspace;
  buffer.bytes = bytes;
  if (!take(context, buffer, placed_workspace(bytes, forced_place(buffer.name)))) return false;
  fill_constant(buffer, execution_.fills.workspace, execution_.fills.guard);
  return send(context, buffer);
}

bool OneRun::fetch(Context& context) {
  bool ok = true;
  each_buffer([&](Buffer& buffer, const Buffer*) {
    if (buffer.target_block == nullptr || !ok) return;
    buffer.slot->forget();
    ok = calls_.read(context.handle, buffer.slot->begin(), buffer.target_block, buffer.slot->size(), buffer.name);
  });
  return ok;
}

void OneRun::execute(Context& context) {
  if (!lay_out() || !inputs_fit() || !take_tensors(context)) return;
  const fusediff_call& call = bench_.view.assign(call_, request_.path, bench_.inputs, bench_.outputs);
  readable_ = !own_memory_;
  std::size_t bytes = 0;
  if (calls_.workspace_bytes(context.handle, call, bytes) && take_workspace(context, bytes)) {
    const fusediff_call& ready = bench_.view.with_workspace(bench_.workspace.data, bytes);
    std::byte* const drawn = drawn_byte();
    const bool elsewhere = request_.target->host != nullptr;
    if (drawn != nullptr && !elsewhere) veil_->cover(drawn);
    calls_.run(context.handle, ready, elsewhere ? drawn : nullptr);
    if (veil_ != nullptr) veil_->lift();
  }
  if (own_memory_ && !calls_.broken()) readable_ = fetch(context);
}

// Where the call is to be suspended, as the target sees that memory; null: nowhere, or in memory that nobody can cover.
std::byte* OneRun::drawn_byte() {
  const Target& target = *request_.target;
  if (veil_ == nullptr || (target.host == nullptr ? own_memory_ : target.host->owns_memory())) return nullptr;
  // Outputs come last and are drawn twice as often: between a scratch that is filled and the output that is written
  // from it other calls do most harm.
  std::size_t places = 0;
  const auto count = [&](const Buffer& buffer) { return buffer.slot == nullptr ? 0u : buffer.is_output ? 2u : 1u; };
  each_buffer([&](const Buffer& buffer, const Buffer*) { places += count(buffer); });
  if (places == 0) return nullptr;
  std::size_t picked = draw_ % places;
  const std::uint64_t at = draw_ / places;
  std::byte* drawn = nullptr;
  each_buffer([&](const Buffer& buffer, const Buffer*) {
    const std::size_t here = count(buffer);
    if (picked < here) drawn = static_cast<std::byte*>(buffer.data) + at % buffer.bytes;
    picked = picked < here ? places : picked - here;
  });
  return drawn;
}

void OneRun::return_blocks(Context& context) {
  each_buffer([&](Buffer& buffer, const Buffer*) {
    if (buffer.target_block != nullptr) context.memory.give_back(buffer.target_block, buffer.slot->size());
  });
}

void OneRun::name_guard_hit() {
  if (execution_.ending != Ending::kSignal) return;
  const Fault& fault = calls_.fault();
  if ((fault.signal != SIGSEGV && fault.signal != SIGBUS) || fault.address == 0) return;
  std::optional<GuardHit> hit;
  each_buffer([&](const Buffer& buffer, const Buffer* over) {
    if (!hit) hit = guard_hit(buffer, over, fault.address);
  });
  if (!hit && arena_.in_guard(fault.address)) hit = GuardHit{};  // of memory that this run does not use
  if (!hit) return;
  hit->access = fault.access;
  execution_.ending = Ending::kGuardHit;
  execution_.guard_hit = std::move(hit);
}

void OneRun::gather_outputs() {
  execution_.outputs.resize(call_.outputs.size());
  for (std::size_t i = 0; i < call_.outputs.size(); ++i) {
    if (readable_ && bench_.outputs[i].first != nullptr) {
      gather(bench_.outputs[i], execution_.outputs[i]);
    } else {
      execution_.outputs[i].clear();
    }
  }
}

void OneRun::compare_inputs() {
  for (std::size_t i = 0; i < bench_.inputs.size(); ++i) {
    const Buffer& buffer = bench_.inputs[i];
    if (buffer.slot == nullptr || buffer.under >= 0) continue;
    if (auto changed = changed_elements(buffer, static_cast<int>(i), request_.inputs[i], bench_.scratch)) {
      execution_.changed_inputs.push_back(*changed);
    }
  }
}

void OneRun::release(Buffer& buffer) {
  if (buffer.slot == nullptr) return;
  // Code that was left in the middle may have a thread that still writes.
  if (!readable_ || calls_.broken()) buffer.slot->forget();
  arena_.release(buffer.slot);
  buffer.slot = nullptr;
}

void OneRun::inspect() {
  name_guard_hit();
  try {
    gather_outputs();
    if (readable_) compare_inputs();
  } catch (const std::bad_alloc&) {
    fail(Ending::kMemory, execution_.phase, "no memory to keep the outputs");
    for (auto& output : execution_.outputs) output.clear();
  }
  if (readable_) {
    each_buffer([&](Buffer& buffer, const Buffer* over) {
      if (buffer.slot != nullptr) find_overruns(buffer, over, execution_.fills.guard, execution_.overruns);
    });
  }
  // In reverse, so that the next run of the same call gets every slot back for the same tensor.
  release(bench_.workspace);
  for (std::size_t i = bench_.outputs.size(); i-- > 0;) release(bench_.outputs[i]);
  for (std::size_t i = bench_.inputs.size(); i-- > 0;) release(bench_.inputs[i]);
  arena_.trim();
}

}  // namespace fusediff
