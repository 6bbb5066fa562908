// What open() makes: the options and the plans that were made under them. And how a function that makes a plan becomes
// a path of an operator.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "kit/target.h"
#include "onednn/plan.h"

namespace fusediff::onednn {

// Adds the primitives of a path to an empty plan. Must not read a tensor.
using Build = void (*)(const kit::Call& call, Plan& plan);

class Context {
 public:
  // REJECTED for options that are unknown or that this process cannot have.
  explicit Context(std::string_view options);

  // The plan for calls of this kind, made at the first. Threads may call it at once.
  std::shared_ptr<const Plan> plan(const kit::Call& call, Build build);

  const Options& options() const { return options_; }

 private:
  Options options_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Plan>> plans_;
};

// Runs f with the errors of oneDNN as statuses: unimplemented is UNSUPPORTED, invalid arguments are REJECTED, the rest
// is FAILED.
void guarded(const std::function<void()>& f);

// The text of fusediff_note() for the calling thread: one line, at most 200 characters.
void set_note(std::string_view text);

template <Build build>
size_t planned_workspace(const kit::Call& call) {
  size_t bytes = 0;
  guarded([&] { bytes = call.context<Context>().plan(call, build)->workspace_bytes(); });
  return bytes;
}

template <Build build>
void planned_run(const kit::Call& call) {
  set_note("");
  guarded([&] {
    const std::shared_ptr<const Plan> plan = call.context<Context>().plan(call, build);
    set_note(plan->implementations());
    plan->execute(call);
  });
}

// A path that computes without oneDNN.
template <void (*compute)(const kit::Call&)>
void plain_run(const kit::Call& call) {
  set_note("plain loops");
  compute(call);
}

// The three paths of an operator.
template <Build fused, Build unfused, void (*reference)(const kit::Call&)>
constexpr kit::Operator make_operator(const char* name, const char* schema) {
  return {name,
          schema,
          {{"fused", planned_run<fused>, planned_workspace<fused>},
           {"unfused", planned_run<unfused>, planned_workspace<unfused>},
           {"reference", plain_run<reference>, nullptr}}};
}

}  // namespace fusediff::onednn
