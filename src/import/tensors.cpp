#include "import/tensors.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <set>
#include <system_error>

#include "base/files.h"
#include "import/dims.h"
#include "import/names.h"
#include "import/stream.h"
#include "model/call.h"
#include "model/case_json.h"
#include "model/quote.h"
#include "model/safetensors.h"
#include "model/values.h"
#include "mutate/recipes.h"
#include "mutate/roles.h"
#include "mutate/scope.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

struct Pooled {
  std::size_t file = 0;
  std::size_t index = 0;  // in its file
  const CapturedTensor* tensor = nullptr;
};

// An input that comes from a file.
struct Taken {
  const InputRule* rule = nullptr;
  std::size_t pooled = 0;
  TensorPlan plan;
  std::shared_ptr<StreamCount> count = std::make_shared<StreamCount>();
};

struct CasePlan {
  std::string name;
  Case c;
  std::vector<Taken> taken;
  std::vector<StoredSpan> spans;
  fs::path made;  // the safetensors file while it is written; "": given up
};

// The element type that an input gets: what the file says, what --dtype says, what the operator takes.
class Typing {
 public:
  Typing(const Operator& op, const TensorOptions& options, const Say& say) : op_(op), options_(options), say_(say) {}

  Status decide(const CapturedTensor& tensor, const InputRule& rule, TensorPlan& plan) const {
    const auto stated = options_.dtypes.find(rule.name);
    const bool is_stated = stated != options_.dtypes.end();
    const ElementType& type = tensor.type;
    if (type.raw) {
      if (!is_stated && type.text.find("V2") == std::string::npos) {
        return user_error(type.text + " says a width and no meaning: --dtype " + rule.name + "=DTYPE says it");
      }
      plan.from = plan.to = is_stated ? stated->second : DType::kBF16;
      if (!is_stated) say_("note: " + type.text + " is read as bf16, as ml_dtypes writes it; --dtype says otherwise");
      if (size_of(plan.from) != type.size) {
        return user_error("--dtype " + rule.name + "=" + std::string(name_of(plan.from)) + " is of " +
                          std::to_string(size_of(plan.from)) + " bytes, the elements of " + type.text + " are of " +
                          std::to_string(type.size));
      }
      return {};
    }
    plan.from = *type.dtype;
    plan.to = is_stated ? stated->second : plan.from;
    if (*type.dtype == DType::kU8 && size_of(plan.to) == 1) plan.from = plan.to;  // bytes that stand for something else
    if (converts(plan.from, plan.to)) return {};
    return user_error("--dtype " + rule.name + ": " + type.text + " cannot become " + std::string(name_of(plan.to)));
  }

  // Is the dtype one that the rule allows? The choice stands in the case where there is one.
  Status enter(const InputRule& rule, const TensorPlan& plan, Case& c) const {
    const auto& choices = rule.dtype.choices;
    const auto wrong = [&](const std::string& legal) {
      return user_error(std::string(name_of(plan.to)) + " is no dtype for it; legal: " + legal + "; --dtype " +
                        rule.name + "=DTYPE converts");
    };
    if (choices.empty()) {
      // The tensor whose dtype this one shares may not be in the file: then it follows.
      const InputRule* const holder = op_.source(rule.dtype.same_as);
      const bool open = holder != nullptr && holder->dtype.choices.size() > 1 && !c.dtypes.contains(holder->name);
      const auto legal = [&] {
        return std::count(holder->dtype.choices.begin(), holder->dtype.choices.end(), plan.to);
      };
      if (open && legal() > 0) c.dtypes[holder->name] = plan.to;
      const DType due = dtype_in(c, op_, rule.dtype, rule.name);
      return plan.to == due ? Status() : wrong(std::string(name_of(due)) + ", as " + quote(rule.dtype.same_as));
    }
    if (std::find(choices.begin(), choices.end(), plan.to) == choices.end()) {
      std::vector<std::string> legal;
      for (const DType dtype : choices) legal.emplace_back(name_of(dtype));
      return wrong(list_of(legal));
    }
    if (choices.size() > 1) c.dtypes[rule.name] = plan.to;
    return {};
  }

 private:
  const Operator& op_;
  const TensorOptions& options_;
  const Say& say_;
};

std::string with_commas(const std::map<std::string, std::int64_t>& dims) {
  std::string text;
  for (const auto& [name, size] : dims) text += " " + name + "=" + std::to_string(size);
  return text;
}

// Where along the tensor its operator's rows lie; nothing: it has none.
std::optional<std::size_t> row_axis(const Operator& op, const InputRule& rule) {
  if (!op.rows) return std::nullopt;
  for (std::size_t d = 0; d < rule.shape.size(); ++d) {
    if (rule.shape[d].text() == op.rows->dim) return d;
  }
  return std::nullopt;
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
      plan.name = unique_name(group.name.empty() ? stem : stem + "_" + group.name);
      if (Status planned = make_plan(group, plan); !planned.ok()) {
        give_up(plan, planned.error());
      } else {
        plans_.push_back(std::move(plan));
      }
    }
    const Status copied = copy(files);
    for (CasePlan& plan : plans_) finish(plan, copied);
    if (!copied.ok()) return copied.error();
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

  std::string unique_name(const std::string& wanted) {
    const std::string base = file_name_of(wanted);
    std::string name = base;
    for (int i = 2; !names_.insert(name).second; ++i) name = base + "_" + std::to_string(i);
    return name;
  }

  void give_up(CasePlan& plan, const Error& why) {
    const Error error{why.blame, plan.name + ": " + why.what};
    if (!failure_) failure_ = error;
    if (several_) say_("no case: " + error.what);  // else it is the error
    std::error_code code;
    if (!plan.made.empty()) fs::remove(plan.made, code);
    plan.made.clear();
  }

  Status make_plan(const TensorGroup& group, CasePlan& plan) {
    plan.c.op = op_.name;
    std::vector<SizeClaim> claims;
    const auto in_turn = [&](const std::vector<InputRule>& rules) -> Status {
      for (const InputRule& rule : rules) {
        const auto at = group.sources.find(rule.name);
        if (at == group.sources.end()) continue;
        if (Status took = take(rule, at->second, claims, plan); !took.ok()) {
          return user_error(quote(pool_[at->second].tensor->name) + " as " + quote(rule.name) + ": " +
                            took.error().what);
        }
      }
      return {};
    };
    if (Status took = in_turn(op_.inputs); !took.ok()) return took;
    if (Status took = in_turn(op_.given); !took.ok()) return took;
    claim_outputs(group, claims);
    if (Status stated = take_attrs(group, claims, plan.c); !stated.ok()) return stated;
    for (const auto& [name, size] : options_.dims) claims.push_back({*Expr::parse(name), size, "--dim " + name});
    const Result<SolvedDims> solved = solve_dims(op_, claims);
    if (!solved.ok()) return solved.error();
    plan.c.dims = solved->dims;
    for (const std::string& note : solved->notes) say_("note: " + note);
    for (const Taken& taken : plan.taken) {
      const auto place = [&] {
        return quote(pool_[taken.pooled].tensor->name) + " as " + quote(taken.rule->name) + ": ";
      };
      if (Status entered = Typing(op_, options_, say_).enter(*taken.rule, taken.plan, plan.c); !entered.ok())
        return user_error(place() + entered.error().what);
    }
    name_bits(plan);
    fill_in(plan.c);
    if (Status fits = check_size(plan); !fits.ok()) return fits;
    return open(plan);
  }

  Status take(const InputRule& rule, std::size_t pooled, std::vector<SizeClaim>& claims, CasePlan& plan) {
    const CapturedTensor& tensor = *pool_[pooled].tensor;
    if (!tensor.problem.empty()) return user_error(tensor.problem);
    Taken taken;
    taken.rule = &rule;
    taken.pooled = pooled;
    if (Status typed = Typing(op_, options_, say_).decide(tensor, rule, taken.plan); !typed.ok()) return typed;
    taken.plan.swapped = tensor.type.swapped;
    taken.plan.fortran = tensor.fortran;
    taken.plan.file_shape = tensor.shape;
    const auto fitted = with_rank(tensor.shape, rule.shape.size());
    if (!fitted) return user_error(shape_text(tensor.shape) + " cannot be one element, which it has to be");
    taken.plan.shape = *fitted;
    if (*fitted != tensor.shape) {
      say_("note: " + quote(tensor.name) + " " + shape_text(tensor.shape) + " is taken as " + shape_text(*fitted));
    }
    if (const auto axis = row_axis(op_, rule); axis && options_.rows) {
      const auto [low, high] = *options_.rows;
      if (high > (*fitted)[*axis]) {
        return user_error("--rows " + std::to_string(low) + ":" + std::to_string(high) + ": there are " +
                          std::to_string((*fitted)[*axis]) + " rows");
      }
      taken.plan.axis = *axis;
      taken.plan.low = low;
      taken.plan.high = high;
    }
    const std::vector<std::int64_t> kept = kept_shape(taken.plan);
    for (std::size_t d = 0; d < kept.size(); ++d) {
      claims.push_back({rule.shape[d], kept[d], "axis " + std::to_string(d) + " of " + quote(rule.name)});
    }
    plan.taken.push_back(std::move(taken));
    return {};
  }

  // What was captured of the outputs says sizes that no input has; the values are not needed.
  void claim_outputs(const TensorGroup& group, std::vector<SizeClaim>& claims) const {
    for (const auto& [name, at] : group.outputs) {
      const CapturedTensor& tensor = *pool_[at].tensor;
      const OutputRule& rule = *op_.output(name);
      const auto fitted = with_rank(tensor.shape, rule.shape.size());
      const bool rows = options_.rows.has_value();
      say_("not used: " + quote(tensor.name) + ": an output of " + op_.name +
           (fitted && !rows ? ", of which only the shape counts" : ""));
      for (std::size_t d = 0; fitted && !rows && d < fitted->size(); ++d) {
        claims.push_back({rule.shape[d], (*fitted)[d], "axis " + std::to_string(d) + " of " + quote(name)});
      }
    }
  }

  Status take_attrs(const TensorGroup& group, std::vector<SizeClaim>& claims, Case& c) const {
    std::map<std::string, std::string> texts;
    for (const auto& [name, at] : group.attrs) {
      const CapturedTensor& tensor = *pool_[at].tensor;
      if (tensor.value.empty() || !tensor.type.dtype || tensor.type.swapped) {
        say_("not used: " + quote(tensor.name) + ": an attribute is one number; --attr " + name + "=VALUE says it");
        continue;
      }
      const std::uint64_t bits = load_bits(*tensor.type.dtype, tensor.value.data());
      if (is_float(*tensor.type.dtype)) {
        char text[64];
        const auto end = std::to_chars(text, text + sizeof text, float_value(*tensor.type.dtype, bits)).ptr;
        texts[name] = std::string(text, end);
      } else {
        texts[name] = std::to_string(integer_value(*tensor.type.dtype, bits));
      }
    }
    for (const auto& [name, text] : options_.attrs) texts[name] = text;
    std::vector<std::string> legal;
    for (const AttrRule& rule : op_.attrs) legal.push_back(rule.name);
    for (const auto& [name, text] : texts) {
      const AttrRule* rule = op_.attr(name);
      if (rule == nullptr) return user_error("--attr: " + not_one_of(name, "an attribute of " + op_.name, legal));
      const Result<AttrValue> value = attr_value(*rule, text);
      if (!value.ok()) return value.error();
      if (rule->derived) {
        claims.push_back({*rule->derived, std::get<std::int64_t>(*value), "the attribute " + name});
      } else {
        c.attrs[name] = *value;
      }
    }
    return {};
  }

  // Inputs that the operator needs and the file has not.
  void fill_in(Case& c) const {
    const auto choose = [&c](const auto& rules) {
      for (const auto& rule : rules) {
        if (rule.dtype.choices.size() > 1) c.dtypes.try_emplace(rule.name, rule.dtype.choices.front());
      }
    };
    choose(op_.inputs);
    choose(op_.given);
    choose(op_.outputs);
    const CaseScope scope(c, op_);
    const auto add = [&](const InputRule& rule, const std::string& name) {
      if (!is_drawn(rule) || c.inputs.contains(name)) return;
      if (rule.condition ? !scope.holds(*rule.condition) : rule.optional) return;
      InputValue& value = c.inputs[name];
      value.fill = plain_fill(rule, dtype_in(c, op_, rule.dtype, name), 1);
      say_("note: " + quote(name) + " is not in the file: it is drawn, " + std::string(name_of(value.fill.kind)));
    };
    for (const auto* rules : {&op_.inputs, &op_.given}) {
      for (const InputRule& rule : *rules) add(rule, rule.name);
    }
  }

  static void name_bits(CasePlan& plan) {
    for (const Taken& taken : plan.taken) {
      InputValue& value = plan.c.inputs[taken.rule->name];
      value = {};
      value.fill.kind = FillKind::kBits;
      value.fill.bits_file = plan.name + ".safetensors#" + taken.rule->name;
      value.fill.bits_dtype = taken.plan.to;
    }
  }

  // The memory cap; where rows would help, how many fit.
  Status check_size(const CasePlan& plan) const {
    const Result<Call> call = bind(plan.c, op_, options_.max_bytes);
    if (call.ok()) return {};
    if (!op_.rows || !bind(plan.c, op_, UINT64_MAX).ok()) return call.error();
    std::int64_t low = 0, high = plan.c.dims.at(op_.rows->dim);
    Case smaller = plan.c;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      smaller.dims[op_.rows->dim] = middle;
      (bind(smaller, op_, options_.max_bytes).ok() ? low : high) = middle;
    }
    if (low == 0) return call.error();
    return user_error(call.error().what + "; --rows 0:" + std::to_string(low) + " takes as many rows as fit");
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

  void finish(CasePlan& plan, const Status& copied) {
    std::error_code code;
    if (!copied.ok() && !plan.made.empty()) fs::remove(plan.made, code);
    if (!copied.ok() || plan.made.empty()) return;
    if (Status fine = check_roles(plan); !fine.ok()) return give_up(plan, fine.error());
    const fs::path beside = options_.out / (plan.name + ".safetensors");
    const fs::path file = options_.out / (plan.name + ".json");
    if (::rename(plan.made.c_str(), beside.c_str()) != 0)
      return give_up(plan, user_error(beside.string() + ": cannot write: " + std::strerror(errno)));
    if (Status wrote = write_file(file, write_case(plan.c, 2) + "\n"); !wrote.ok()) return give_up(plan, wrote.error());
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
  std::set<std::string> names_;
  std::vector<CasePlan> plans_;
  std::optional<Error> failure_;
  int written_ = 0;
  bool several_ = false;  // groups
};

}  // namespace

std::string file_name_of(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, 100)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || (c == '.' && !name.empty());
    name += plain ? c : '_';
  }
  return name.empty() ? "captured" : name;
}

Result<AttrValue> attr_value(const AttrRule& rule, const std::string& text) {
  const char* const end = text.data() + text.size();
  const auto wrong = [&](const std::string& what) {
    return user_error("--attr " + rule.name + ": " + quote(text) + " is no " + what);
  };
  if (rule.kind == AttrKind::kChoice) {
    if (std::find(rule.choices.begin(), rule.choices.end(), text) != rule.choices.end()) return AttrValue(text);
    return user_error("--attr " + rule.name + ": " + not_one_of(text, "a choice", rule.choices));
  }
  if (rule.kind == AttrKind::kFloat) {
    double value = 0;
    const auto [stop, code] = std::from_chars(text.data(), end, value);
    return code == std::errc() && stop == end ? Result<AttrValue>(AttrValue(value)) : wrong("number");
  }
  if (rule.kind == AttrKind::kBool && (text == "true" || text == "false"))
    return AttrValue(std::int64_t{text == "true"});
  std::int64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end) return wrong("whole number");
  if (rule.kind == AttrKind::kBool && value != 0 && value != 1) return wrong("bool; true and false are");
  return AttrValue(value);
}

Result<int> import_tensors(const std::vector<CapturedFile>& files, const Operator& op, const TensorOptions& options,
                           const Say& say) {
  return Import(op, options, say).run(files);
}

}  // namespace fusediff
