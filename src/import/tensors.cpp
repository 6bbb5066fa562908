#include "import/tensors.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <system_error>

#include "base/files.h"
#include "import/case_plan.h"
#include "import/destination.h"
#include "model/call.h"
#include "model/case_json.h"
#include "model/quote.h"
#include "model/safetensors.h"
#include "model/values.h"
#include "mutate/roles.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

std::string with_commas(const std::map<std::string, std::int64_t>& dims) {
  std::string text;
  for (const auto& [name, size] : dims) text += " " + name + "=" + std::to_string(size);
  return text;
}

class Import {
 public:
  Import(const Operator& op, const TensorOptions& options, const Say& say) : op_(op), options_(options) {
    // What holds of many cases is said once.
    say_ = [this, &say](const std::string& line) {
      if (said_.insert(line).second) say(line);
    };
  }

  Result<int> run(const std::vector<CapturedFile>& files) {
    if (Status known = check_options(); !known.ok()) return known.error();
    if (Status listed = list(files); !listed.ok()) return listed.error();
    std::vector<std::string> names;
    for (const Pooled& one : pool_) names.push_back(one.tensor->name);
    const Result<Matching> matching = match_names(names, op_, options_.names, options_.separator);
    if (!matching.ok()) return user_error(quote(files.front().path.string()) + ": " + matching.error().what);
    several_ = matching->groups.size() > 1;
    for (const std::size_t at : matching->unused) say_unused(*pool_[at].tensor);
    const std::string stem = options_.name.empty() ? files.front().path.stem().string() : options_.name;
    for (const TensorGroup& group : matching->groups) {
      CasePlan plan;
      plan.name = names_.take(group.name.empty() ? stem : stem + "_" + group.name);
      Status planned = Planner(op_, options_, pool_, say_).plan(group, plan);
      if (planned.ok()) planned = open(plan);
      if (!planned.ok()) {
        give_up(plan, planned.error());
      } else {
        plans_.push_back(std::move(plan));
      }
    }
    Status ready = may_write_all(MadeFile::kSizeOnly);
    if (ready.ok()) ready = copy(files);
    if (ready.ok()) {
      for (CasePlan& plan : plans_) check(plan);
      ready = may_write_all(MadeFile::kWhole);
    }
    for (CasePlan& plan : plans_) finish(plan, ready);
    if (!ready.ok()) return ready.error();
    if (written_ == 0 && failure_) return *failure_;
    return written_;
  }

 private:
  // Names that the user wrote.
  Status check_options() const {
    std::vector<std::string> dims, inputs;
    for (const DimRule& rule : op_.dims) dims.push_back(rule.name);
    for (const auto* rules : {&op_.inputs, &op_.given}) {
      for (const InputRule& rule : *rules) inputs.push_back(rule.name);
    }
    for (const auto& [name, size] : options_.dims) {
      if (op_.dim(name) == nullptr) return user_error("--dim: " + not_one_of(name, "a dim of " + op_.name, dims));
    }
    for (const auto& [name, dtype] : options_.dtypes) {
      if (op_.source(name) == nullptr)
        return user_error("--dtype: " + not_one_of(name, "an input of " + op_.name, inputs));
    }
    return {};
  }

  Status list(const std::vector<CapturedFile>& files) {
    tensors_.resize(files.size());
    std::set<std::string> names;
    for (std::size_t f = 0; f < files.size(); ++f) {
      Result<std::vector<CapturedTensor>> listed = files[f].format->list(files[f].path);
      if (!listed.ok()) return listed.error();
      tensors_[f] = *std::move(listed);
      for (std::size_t i = 0; i < tensors_[f].size(); ++i) {
        if (!names.insert(tensors_[f][i].name).second)
          return user_error("two files hold a tensor " + quote(tensors_[f][i].name) + "; import them one by one");
        pool_.push_back({f, i, &tensors_[f][i]});
      }
    }
    return {};
  }

  void say_unused(const CapturedTensor& tensor) const {
    const std::string why = tensor.problem.empty() ? "no input of " + op_.name +
                                                         " has this name; --map INPUT=" + tensor.name + " would use it"
                                                   : tensor.problem;
    say_("not used: " + quote(tensor.name) + " " + tensor.type.text + " " + shape_text(tensor.shape) + ": " + why);
  }

  void give_up(CasePlan& plan, const Error& why) {
    const Error error{why.blame, plan.name + ": " + why.what};
    if (!failure_) failure_ = error;
    if (several_) say_("no case: " + error.what);  // else it is the error
    std::error_code code;
    if (!plan.made.empty()) fs::remove(plan.made, code);
    plan.made.clear();
  }

  // Lays the safetensors file out, header written, bytes to come.
  Status open(CasePlan& plan) {
    for (const Taken& taken : plan.taken) {
      plan.spans.push_back({taken.rule->name, taken.plan.to, kept_shape(taken.plan), 0, kept_bytes(taken.plan)});
    }
    const std::string front = safetensors_front(plan.spans);
    plan.made = options_.out / ("." + plan.name + ".safetensors.tmp-" + std::to_string(::getpid()));
    std::uint64_t offset = front.size();
    for (std::size_t i = 0; i < plan.taken.size(); ++i) {
      plan.taken[i].plan.file = plan.made;
      plan.taken[i].plan.offset = offset;
      offset += plan.spans[i].bytes;
    }
    const int descriptor = ::open(plan.made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    const bool wrote = descriptor >= 0 &&
                       ::write(descriptor, front.data(), front.size()) == static_cast<ssize_t>(front.size()) &&
                       ::ftruncate(descriptor, static_cast<off_t>(offset)) == 0;
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    if (wrote) return {};
    return user_error((options_.out / plan.name).string() + ".safetensors: cannot write: " + std::strerror(error));
  }

  // One pass over each file; a tensor that several cases share goes to all of them.
  Status copy(const std::vector<CapturedFile>& files) {
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::pair<CasePlan*, Taken*>>> wanted;
    for (CasePlan& plan : plans_) {
      for (Taken& taken : plan.taken) {
        const Pooled& from = pool_[taken.pooled];
        wanted[{from.file, from.index}].push_back({&plan, &taken});
      }
    }
    for (std::size_t f = 0; f < files.size(); ++f) {
      const auto sink_of = [&](std::size_t index) -> PieceSink {
        const auto at = wanted.find({f, index});
        if (at == wanted.end()) return {};
        std::vector<std::pair<CasePlan*, PieceSink>> sinks;
        for (auto& [plan, taken] : at->second) {
          if (!plan->made.empty()) sinks.emplace_back(plan, stream_into(taken->plan, taken->count));
        }
        return [this, sinks = std::move(sinks)](std::span<const std::byte> piece) -> Status {
          for (const auto& [plan, sink] : sinks) {
            if (plan->made.empty()) continue;
            if (Status took = sink(piece); !took.ok()) give_up(*plan, took.error());
          }
          return {};
        };
      };
      if (wanted.empty()) break;
      if (Status read = files[f].format->read(files[f].path, tensors_[f], sink_of); !read.ok()) return read;
    }
    return {};
  }

  // Values that a role forbids are found here, one tensor in memory.
  Status check_roles(const CasePlan& plan) const {
    const Result<Call> call = bind(plan.c, op_, options_.max_bytes);
    if (!call.ok()) return call.error();
    const auto check = [&](const InputRule& rule, const Tensor& tensor) -> Status {
      const bool free = takes_any_value(rule) && tensor.dtype != DType::kBool;
      const bool ours =
          std::any_of(plan.taken.begin(), plan.taken.end(), [&](const Taken& taken) { return taken.rule == &rule; });
      if (free || !ours) return {};
      const Result<StoredTensor> stored = read_safetensor(plan.made, rule.name);
      return stored.ok() ? check_values(stored->bytes, rule, tensor, *call) : Status(stored.error());
    };
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
      if (Status fine = check(op_.inputs[i], call->inputs[i]); !fine.ok()) return fine;
    }
    for (std::size_t i = 0; i < op_.given.size(); ++i) {
      if (Status fine = check(op_.given[i], call->givens[i]); !fine.ok()) return fine;
    }
    return {};
  }

  void check(CasePlan& plan) {
    if (plan.made.empty()) return;
    if (Status fine = check_roles(plan); !fine.ok()) give_up(plan, fine.error());
  }

  fs::path place_of(const CasePlan& plan, const char* ending) const { return options_.out / (plan.name + ending); }
  static std::string text_of(const CasePlan& plan) { return write_case(plan.c, 2) + "\n"; }

  Status may_write_all(MadeFile known) const {
    for (const CasePlan& plan : plans_) {
      if (plan.made.empty()) continue;
      if (Status may = may_write(place_of(plan, ".json"), text_of(plan)); !may.ok()) return may;
      if (Status may = may_write(place_of(plan, ".safetensors"), plan.made, known); !may.ok()) return may;
    }
    return {};
  }

  void finish(CasePlan& plan, const Status& ready) {
    std::error_code code;
    if (!ready.ok() && !plan.made.empty()) fs::remove(plan.made, code);
    if (!ready.ok() || plan.made.empty()) return;
    const fs::path beside = place_of(plan, ".safetensors");
    const fs::path file = place_of(plan, ".json");
    if (::rename(plan.made.c_str(), beside.c_str()) != 0)
      return give_up(plan, user_error(beside.string() + ": cannot write: " + std::strerror(errno)));
    if (Status wrote = write_file(file, text_of(plan)); !wrote.ok()) return give_up(plan, wrote.error());
    ++written_;
    std::string line = "case " + file.string() + ":" + with_commas(plan.c.dims);
    for (const Taken& taken : plan.taken) {
      line += ", " + taken.rule->name + " " + std::string(name_of(taken.plan.to)) + " " +
              shape_text(kept_shape(taken.plan));
      if (taken.plan.from != taken.plan.to) {
        line += " from " + std::string(name_of(taken.plan.from)) + " (" + std::to_string(taken.count->changed) +
                " of " + std::to_string(taken.count->elements) + " values rounded)";
      }
    }
    say_(line);
  }

  const Operator& op_;
  const TensorOptions& options_;
  Say say_;
  std::set<std::string> said_;
  std::vector<std::vector<CapturedTensor>> tensors_;  // [file]
  std::vector<Pooled> pool_;
  FileNames names_;
  std::vector<CasePlan> plans_;
  std::optional<Error> failure_;
  int written_ = 0;
  bool several_ = false;  // groups
};

}  // namespace

Result<int> import_tensors(const std::vector<CapturedFile>& files, const Operator& op, const TensorOptions& options,
                           const Say& say) {
  return Import(op, options, say).run(files);
}

}  // namespace fusediff
