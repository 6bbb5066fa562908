#include "engine/side.h"

namespace fusediff {

SideRun::SideRun(const PathOf& path, const Call& call, Bank bank, bool keep_context)
    : target_(path.target),
      path_(path.path),
      shared_(&call),
      bank_(bank),
      keep_context_(keep_context),
      aligned_(true) {}

SideRun::SideRun(const PathOf& path, Adapted adapted, Bank bank, bool keep_context)
    : target_(path.target),
      path_(path.path),
      adapted_(std::move(adapted)),
      bank_(bank),
      keep_context_(keep_context),
      aligned_(true) {
  for (std::size_t i = 0; i < adapted_.output_from.size(); ++i)
    aligned_ = aligned_ && adapted_.output_from[i] == static_cast<int>(i);
  aligned_ = aligned_ && adapted_.output_from.size() == adapted_.call.outputs.size();
}

void SideRun::run(Runner& runner, const std::vector<std::span<const std::byte>>& inputs, const RunChoice& choice,
                  Execution& execution) const {
  std::vector<std::span<const std::byte>> own;
  if (shared_ == nullptr) {
    own.reserve(adapted_.input_from.size());
    for (const int from : adapted_.input_from) {
      own.push_back(from < 0 ? std::span<const std::byte>() : inputs[static_cast<std::size_t>(from)]);
    }
  }
  RunRequest request;
  request.target = target_;
  request.path = path_;
  request.call = &call();
  request.inputs = shared_ == nullptr ? own : inputs;
  request.fills = choice.fills;
  request.bank = bank_;
  request.middle = choice.middle;
  request.keep_context = keep_context_;
  request.pinned = choice.pinned;
  runner.run(request, execution);
  if (aligned_) return;
  std::vector<std::vector<std::byte>> outputs(adapted_.output_from.size());
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const int from = adapted_.output_from[o];
    if (from >= 0 && static_cast<std::size_t>(from) < execution.outputs.size())
      outputs[o] = std::move(execution.outputs[static_cast<std::size_t>(from)]);
  }
  execution.outputs = std::move(outputs);
}

}  // namespace fusediff
