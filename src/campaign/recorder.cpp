#include "campaign/recorder.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/hash.h"
#include "campaign/ask.h"
#include "campaign/carried.h"
#include "campaign/protocol.h"
#include "model/case_json.h"
#include "model/expand.h"
#include "model/safetensors.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxFile = kMaxBundleTensorBytes + (std::uint64_t{16} << 20);

// What a child said; died: it ended, and why.
struct Attempt {
  std::optional<Recording> recording;
  std::string why_not;
  bool died = false;
  bool stopped = false;
};

Status read_tensors(const fs::path& file, std::vector<StoredTensor>& tensors) {
  const Result<std::string> text = read_file(file, kMaxFile);
  if (!text.ok()) return text.error();
  Result<std::vector<StoredTensor>> read = parse_safetensors(*text);
  if (!read.ok()) return read.error();
  tensors = *std::move(read);
  return {};
}

Attempt ask(const Bundle& bundle, const RecorderOptions& options, const fs::path& into, bool run,
            std::vector<std::string>& notes) {
  const Result<Case> c = carried(bundle.smallest, into, "case.safetensors");
  if (!c.ok()) return {{}, c.error().what, false, false};
  Request request;
  request.kind = Request::Kind::kRecord;
  request.case_text = write_case(*c);
  request.folder = into;
  request.into = into;
  request.run = run;
  Child child(options.child);
  const Result<Outcome> outcome = child.request(write_request(request), 2 * answer_seconds(options.seconds));
  if (!outcome.ok()) return {{}, outcome.error().what, false, false};
  if (outcome->kind == Outcome::Kind::kStopped) return {{}, "", false, true};
  if (outcome->kind == Outcome::Kind::kDied) return {{}, describe(outcome->ended), true, false};
  if (outcome->kind == Outcome::Kind::kTimedOut) return {{}, "it did not come back", true, false};
  if (outcome->kind == Outcome::Kind::kGarbled) return {{}, "it broke its own channel of answers", true, false};
  Result<RecordAnswer> answer = parse_record_answer(outcome->reply);
  if (!answer.ok()) return {{}, answer.error().what, false, false};
  Recording recording = std::move(answer->recording);
  Status read = read_tensors(into / "inputs.safetensors", recording.inputs);
  if (read.ok()) read = read_tensors(into / "outputs.safetensors", recording.outputs);
  if (!read.ok()) return {{}, read.error().what, false, false};
  for (std::string& note : answer->notes) notes.push_back(std::move(note));
  return {std::move(recording), "", false, false};
}

bool is_recorded(const std::string& name, const Hash128& hash, const Recording& recording) {
  for (const std::vector<RecordedCall>& calls : recording.calls) {
    for (const RecordedCall& call : calls) {
      for (std::size_t i = 0; i < call.inputs.size(); ++i) {
        if (call.inputs[i].name != name || call.stored[i].empty()) continue;
        const auto tensor = std::find_if(recording.inputs.begin(), recording.inputs.end(),
                                         [&](const StoredTensor& t) { return t.name == call.stored[i]; });
        if (tensor == recording.inputs.end()) continue;
        if (hash128(stored(call.inputs[i], tensor->bytes)) == hash) return true;
      }
    }
  }
  return false;
}

}  // namespace

void record_into(Bundle& bundle, const RecorderOptions& options, bool ends_process) {
  std::vector<std::string>& notes = bundle.finding.notes;
  bundle.recording.reset();
  const Result<PassingFolder> folder = PassingFolder::make(options.folder, "record");
  if (!folder.ok()) {
    notes.push_back("inputs and outputs are not kept: " + folder.error().what);
    return;
  }
  const fs::path& into = folder->path();
  Attempt attempt;
  if (!ends_process) attempt = ask(bundle, options, into, true, notes);
  const bool died = attempt.died;
  if (ends_process || died) attempt = ask(bundle, options, into, false, notes);
  if (attempt.recording) {
    bundle.recording = std::move(attempt.recording);
    if (ends_process) notes.push_back("outputs are not kept: the case ends the process that runs it");
    if (died) notes.push_back("outputs are not kept: the process that recorded them ended");
  } else if (!attempt.stopped) {
    notes.push_back(
        "inputs and outputs are not kept: " +
        (attempt.died ? "the process that recorded them ended (" + attempt.why_not + ")" : attempt.why_not));
  }
}

bool has_recorded_inputs(const Finding& seen, const Recording& recording) {
  for (const TensorHash& input : seen.input_hashes) {
    for (const std::optional<Hash128>& hash : input.hash) {
      if (hash && !is_recorded(input.name, *hash, recording)) return false;
    }
  }
  return true;
}

}  // namespace fusediff
