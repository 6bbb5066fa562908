#include "campaign/serve.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "base/files.h"
#include "campaign/carried.h"
#include "campaign/child.h"
#include "campaign/death.h"
#include "campaign/manifest.h"
#include "engine/bundle.h"
#include "engine/minimize.h"
#include "engine/run_sides.h"
#include "model/case_json.h"
#include "model/safetensors.h"

namespace fusediff {
namespace {

// Lines of a descriptor; nothing at its end.
class LineReader {
 public:
  explicit LineReader(int descriptor) : descriptor_(descriptor) {}
  std::optional<std::string> next() {
    for (;;) {
      const std::size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      char block[1 << 16];
      const ssize_t got = ::read(descriptor_, block, sizeof block);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return std::nullopt;
      buffer_.append(block, static_cast<std::size_t>(got));
    }
  }

 private:
  int descriptor_;
  std::string buffer_;
};

bool write_line(int descriptor, std::string line) {
  line += '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t sent = ::write(descriptor, rest.data(), rest.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string check_case(Engine& engine, const Case& c) {
  Result<CheckResult> result = engine.check(c);
  if (!result.ok()) return write_answer(result.error());
  return write_answer(
      CheckAnswer{std::move(result->verdict), result->runs, result->target_nanoseconds, engine.tainted()});
}

// Asks a process of its own about every candidate: for cases that end the process. Operators are those of `engine`.
class Apart {
 public:
  Apart(Engine& engine, const OpenAnswer& sides, const Request& request)
      : engine_(engine),
        sides_(sides),
        seconds_(request.apart_seconds),
        into_(request.into),
        child_(options_of(request)) {}

  Predicate predicate() {
    return {[this](const Case& c, bool) { return check(c); }, [this](std::string_view op) { return engine_.find(op); },
            [] { return false; }, engine_.max_bytes()};
  }

 private:
  static ChildOptions options_of(const Request& request) {
    ChildOptions options;
    options.arguments = request.apart;
    return options;
  }

  Result<CheckResult> check(const Case& c) {
    const Result<Case> candidate = carried(c, into_, "candidate.safetensors");
    if (!candidate.ok()) return candidate.error();
    Result<Seen> seen = check_in_child(child_, *candidate, sides_, seconds_, into_);
    if (!seen.ok()) return seen.error();
    CheckResult result;
    if (seen->finding) result.verdict = {Verdict::Kind::kFinding, "", std::move(seen->finding)};
    return result;
  }

  Engine& engine_;
  const OpenAnswer& sides_;
  double seconds_;
  std::filesystem::path into_;  // takes the bits of candidates where they are large
  Child child_;
};

MinimizeOptions minimize_options(const Request& request, int out) {
  MinimizeOptions options;
  if (request.progress) {
    options.accepted = [out, into = request.into, number = 0](const Case& c) mutable {
      const Result<Case> said = carried(c, into, "accepted_" + std::to_string(number++) + ".safetensors");
      if (said.ok()) (void)write_line(out, write_progress({"", 0, write_case(*said)}));
    };
    options.progress = [out](const std::string& step, int checks) {
      (void)write_line(out, write_progress({step, checks}));  // whoever is gone is met when the answer is written
    };
  }
  options.seconds = request.seconds;
  options.tries = request.tries;
  options.needed = request.needed;
  return options;
}

std::string answer_of(Result<Minimized> result, const std::filesystem::path& into, bool tainted) {
  if (!result.ok()) return write_answer(result.error());
  Result<Case> smallest = carried(std::move(result->smallest), into, "smallest.safetensors");
  if (!smallest.ok()) return write_answer(smallest.error());
  MinimizeAnswer answer;
  answer.smallest = *std::move(smallest);
  answer.finding = std::move(result->finding);
  answer.checks = result->checks;
  answer.finished = result->finished;
  answer.notes = std::move(result->notes);
  answer.tainted = tainted;
  return write_answer(answer);
}

std::uint64_t bytes_of(const std::vector<StoredTensor>& tensors) {
  std::uint64_t bytes = 0;
  for (const StoredTensor& tensor : tensors) bytes += tensor.bytes.size();
  return bytes;
}

std::string too_large(const char* what, const std::vector<StoredTensor>& tensors) {
  return std::string(what) + " have " + std::to_string(bytes_of(tensors) >> 20) + " MiB, more than the " +
         std::to_string(kMaxBundleTensorBytes >> 20) + " that a bundle takes";
}

std::string record_case(Engine& engine, const Case& c, const Request& request) {
  Result<Recording> recording = engine.record(c, request.run);
  if (!recording.ok()) return write_answer(recording.error());
  RecordAnswer answer;
  if (bytes_of(recording->inputs) > kMaxBundleTensorBytes)
    return write_answer(user_error(too_large("the inputs", recording->inputs)));
  if (bytes_of(recording->outputs) > kMaxBundleTensorBytes) {
    answer.notes.push_back(too_large("outputs are not kept: they", recording->outputs));
    recording->outputs.clear();
  }
  Status written = write_file(request.into / "inputs.safetensors", write_safetensors(recording->inputs));
  if (written.ok()) written = write_file(request.into / "outputs.safetensors", write_safetensors(recording->outputs));
  if (!written.ok()) return write_answer(written.error());
  answer.recording = *std::move(recording);
  answer.tainted = engine.tainted();
  return write_answer(answer);
}

std::string outputs_of(Engine& engine, const OpenedSetup& opened, const Case& c, const Request& request) {
  const Result<RanCase> ran = engine.run_sides(own_call(c), request.sides);
  if (!ran.ok()) return write_answer(ran.error());
  std::array<std::string, 2> paths;
  for (const Side side : kSides) paths[index_of(side)] = opened.comparison.sides[index_of(side)].path;
  OutputsAnswer answer;
  for (const ManifestLine& line : lines_of(c, *ran, paths)) answer.lines.push_back(write_manifest_line(line));
  answer.tainted = engine.tainted();
  return write_answer(answer);
}

std::string legal_case(Engine& engine, const Case& c) {
  const Status legal = engine.legal(c);
  return legal.ok() ? write_answer(LegalAnswer{}) : write_answer(legal.error());
}

std::string dtypes_of(const std::string& name, const DTypeRule& rule) {
  std::string text = name;
  for (const DType dtype : rule.choices) text += " " + std::string(name_of(dtype));
  return text;
}

ListAnswer::Entry listed(const Operator& op) {
  ListAnswer::Entry entry;
  entry.name = op.name;
  entry.paths = op.paths;
  for (const DimRule& dim : op.dims) {
    entry.dims.push_back(dim.name + " " + std::to_string(dim.low) + ".." + std::to_string(dim.high));
  }
  for (const InputRule& input : op.inputs) {
    if (input.dtype.choices.size() > 1) entry.dtypes.push_back(dtypes_of(input.name, input.dtype));
  }
  return entry;
}

std::string list_target(const Setup& setup) {
  TargetLoader loader(setup.folders);
  const Result<const Target*> target = loader.load(setup.target, load_options(setup, Side::kTarget));
  if (!target.ok()) return write_answer(target.error());
  ListAnswer answer{(*target)->name, (*target)->version, (*target)->file.string(), {}};
  for (const Operator& op : (*target)->schema.operators) answer.operators.push_back(listed(op));
  return write_answer(answer);
}

// Of that side's process. The target's own other path is opened with it; what comes with fusediff gets nothing.
const std::vector<std::string>& variables_of(const Setup& setup, const Comparison& comparison, Side side) {
  static const std::vector<std::string> none;
  const bool one = comparison.sides[0].target == comparison.sides[1].target;
  if (side == Side::kTarget || one) return setup.target_environment;
  return setup.against.empty() ? none : setup.against_environment;
}

OpenAnswer described(const Setup& setup, const OpenedSetup& opened) {
  OpenAnswer answer;
  for (const Side side : kSides) {
    const PathOf& of = opened.comparison.sides[index_of(side)];
    answer.targets[index_of(side)] = of.target->name;
    answer.versions[index_of(side)] = of.target->version;
    answer.paths[index_of(side)] = of.path;
    answer.files[index_of(side)] = of.target->file.string();
    answer.options[index_of(side)] = of.target->options;
    answer.isolated[index_of(side)] = of.target->host != nullptr;
    answer.variables[index_of(side)] = variables_of(setup, opened.comparison, side);
  }
  for (const Operator* op : opened.ops) answer.ops.push_back(op->name);
  answer.left_out = opened.left_out;
  return answer;
}

// Both sides and their engine, made when first asked for.
class Desk {
 public:
  // out: takes what is said ahead of an answer.
  Desk(const Setup& setup, int out) : setup_(setup), out_(out) {}

  std::string answer_to(std::string_view line) {
    const Result<Request> request = parse_request(line);
    if (!request.ok()) return write_answer(request.error());
    if (request->kind == Request::Kind::kList) return list_target(setup_);
    if (Status opened = open(); !opened.ok()) return write_answer(opened.error());
    if (request->kind == Request::Kind::kOpen) return write_answer(described(setup_, *opened_));
    const Result<Case> c = parse_case(request->case_text, request->folder);
    if (!c.ok()) return write_answer(c.error());
    if (request->kind == Request::Kind::kOutputs) return outputs_of(*engine_, *opened_, *c, *request);
    if (request->kind == Request::Kind::kLegal) return legal_case(*engine_, *c);
    if (request->kind == Request::Kind::kRecord) return record_case(*engine_, *c, *request);
    if (request->kind == Request::Kind::kMinimize && !request->apart.empty()) {
      const OpenAnswer sides = described(setup_, *opened_);
      Apart apart(*engine_, sides, *request);
      return answer_of(minimize(apart.predicate(), *c, minimize_options(*request, out_)), request->into,
                       engine_->tainted());
    }
    if (request->kind == Request::Kind::kMinimize) {
      // What was explained once is not explained again for each candidate; the minimiser has the last one explained.
      is_minimizing_ = true;
      std::string answer =
          answer_of(minimize(*engine_, *c, minimize_options(*request, out_)), request->into, engine_->tainted());
      is_minimizing_ = false;
      return answer;
    }
    return check_case(*engine_, *c);
  }

 private:
  Status open() {
    if (engine_) return {};
    Result<OpenedSetup> opened = open_setup(setup_);
    if (!opened.ok()) return opened.error();
    opened_.emplace(*std::move(opened));
    CheckOptions options = check_options(setup_);
    options.is_known = [this](const std::string&) { return is_minimizing_; };
    engine_.emplace(opened_->comparison, std::move(options));
    return {};
  }

  const Setup& setup_;
  int out_;
  std::optional<OpenedSetup> opened_;
  std::optional<Engine> engine_;
  bool is_minimizing_ = false;
};

}  // namespace

Status serve(const Setup& setup, int in, int out) {
  LineReader lines(in);
  Desk desk(setup, out);
  while (const std::optional<std::string> line = lines.next()) {
    if (!write_line(out, desk.answer_to(*line))) {
      return our_error(std::string("cannot answer a request: ") + std::strerror(errno));
    }
  }
  return {};
}

}  // namespace fusediff
