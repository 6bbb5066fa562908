#include "campaign/protocol.h"

#include <exception>
#include <nlohmann/json.hpp>

#include "model/case_json.h"
#include "model/finding_json.h"
#include "model/inline_bits.h"
#include "model/recording_json.h"

namespace fusediff {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;
using Pair = std::array<std::string, 2>;

constexpr std::array<const char*, 7> kKinds = {"check", "minimize", "list", "open", "record", "outputs", "legal"};

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Runs `read` on an answer's object; what it throws, and what is no answer at all, is our error.
template <typename Answer, typename Read>
Result<Answer> parse_answer(std::string_view line, Read read) {
  try {
    const Json json = Json::parse(line);
    if (const auto error = json.find("error"); error != json.end()) {
      return Error{error->at("ours").get<bool>() ? Blame::kOurs : Blame::kUser, error->at("what").get<std::string>()};
    }
    return read(json);
  } catch (const std::exception& thrown) {
    return our_error(std::string("the answer of a child process was not understood: ") + thrown.what());
  }
}

}  // namespace

std::string write_request(const Request& request) {
  return text_of({{"do", kKinds[static_cast<std::size_t>(request.kind)]},
                  {"case", request.case_text},
                  {"folder", request.folder.string()},
                  {"seconds", request.seconds},
                  {"tries", request.tries},
                  {"needed", request.needed},
                  {"progress", request.progress},
                  {"apart", request.apart},
                  {"apart_seconds", request.apart_seconds},
                  {"into", request.into.string()},
                  {"run", request.run},
                  {"sides", request.sides}});
}

Result<Request> parse_request(std::string_view line) {
  try {
    const Json json = Json::parse(line);
    Request request;
    const std::string kind = json.at("do");
    bool known = false;
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      if (kind == kKinds[i]) {
        request.kind = static_cast<Request::Kind>(i);
        known = true;
      }
    }
    if (!known) return our_error("a request to do \"" + kind + "\"");
    request.case_text = json.at("case");
    request.folder = json.at("folder").get<std::string>();
    request.seconds = json.at("seconds");
    request.tries = json.at("tries");
    request.needed = json.at("needed");
    request.progress = json.value("progress", false);
    request.apart = json.value("apart", Names());
    request.apart_seconds = json.value("apart_seconds", 0.0);
    request.into = json.value("into", "");
    request.run = json.value("run", true);
    request.sides = json.value("sides", std::array<bool, 2>{true, true});
    return request;
  } catch (const std::exception& thrown) {
    return our_error(std::string("a request was not understood: ") + thrown.what());
  }
}

std::string write_progress(const Progress& progress) {
  return text_of({{"progress", {{"step", progress.step}, {"checks", progress.checks}, {"case", progress.case_text}}}});
}

std::optional<Progress> parse_progress(std::string_view line) {
  try {
    const Json json = Json::parse(line);
    const auto progress = json.find("progress");
    if (progress == json.end()) return std::nullopt;
    return Progress{progress->at("step"), progress->at("checks"), progress->at("case")};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string write_answer(const Error& error) {
  return text_of({{"error", {{"ours", error.blame == Blame::kOurs}, {"what", error.what}}}});
}

std::string write_answer(const CheckAnswer& answer) {
  return text_of({{"verdict", write_verdict(answer.verdict)},
                  {"runs", answer.runs},
                  {"target_nanoseconds", answer.target_nanoseconds},
                  {"tainted", answer.tainted}});
}

Result<CheckAnswer> parse_check_answer(std::string_view line) {
  return parse_answer<CheckAnswer>(line, [](const Json& json) -> Result<CheckAnswer> {
    Result<Verdict> verdict = parse_verdict(json.at("verdict").get<std::string>());
    if (!verdict.ok()) return verdict.error();
    return CheckAnswer{*std::move(verdict), json.at("runs"), json.at("target_nanoseconds"), json.at("tainted")};
  });
}

std::string write_answer(const MinimizeAnswer& answer) {
  return text_of({{"case", write_case(with_small_bits_inline(answer.smallest))},
                  {"finding", write_finding(answer.finding)},
                  {"checks", answer.checks},
                  {"finished", answer.finished},
                  {"notes", answer.notes},
                  {"tainted", answer.tainted}});
}

Result<MinimizeAnswer> parse_minimize_answer(std::string_view line, const std::filesystem::path& folder) {
  return parse_answer<MinimizeAnswer>(line, [&folder](const Json& json) -> Result<MinimizeAnswer> {
    Result<Case> smallest = parse_case(json.at("case").get<std::string>(), folder);
    if (!smallest.ok()) return smallest.error();
    Result<Finding> finding = parse_finding(json.at("finding").get<std::string>());
    if (!finding.ok()) return finding.error();
    MinimizeAnswer answer;
    answer.smallest = *std::move(smallest);
    answer.finding = *std::move(finding);
    answer.checks = json.at("checks");
    answer.finished = json.at("finished");
    answer.notes = json.at("notes").get<Names>();
    answer.tainted = json.at("tainted");
    return answer;
  });
}

std::string write_answer(const RecordAnswer& answer) {
  return text_of(
      {{"recording", write_recording(answer.recording)}, {"notes", answer.notes}, {"tainted", answer.tainted}});
}

Result<RecordAnswer> parse_record_answer(std::string_view line) {
  return parse_answer<RecordAnswer>(line, [](const Json& json) -> Result<RecordAnswer> {
    Result<Recording> recording = parse_recording(json.at("recording").get<std::string>());
    if (!recording.ok()) return recording.error();
    return RecordAnswer{*std::move(recording), json.at("notes").get<Names>(), json.at("tainted")};
  });
}

std::string write_answer(const ListAnswer& answer) {
  Json operators = Json::array();
  for (const ListAnswer::Entry& op : answer.operators) {
    operators.push_back({{"name", op.name}, {"paths", op.paths}, {"dims", op.dims}, {"dtypes", op.dtypes}});
  }
  return text_of(
      {{"target", answer.target}, {"version", answer.version}, {"file", answer.file}, {"operators", operators}});
}

Result<ListAnswer> parse_list_answer(std::string_view line) {
  return parse_answer<ListAnswer>(line, [](const Json& json) -> Result<ListAnswer> {
    ListAnswer answer{json.at("target"), json.at("version"), json.at("file"), {}};
    for (const Json& op : json.at("operators")) {
      answer.operators.push_back(
          {op.at("name"), op.at("paths").get<Names>(), op.at("dims").get<Names>(), op.at("dtypes").get<Names>()});
    }
    return answer;
  });
}

std::string write_answer(const OpenAnswer& answer) {
  return text_of({{"targets", answer.targets},
                  {"versions", answer.versions},
                  {"paths", answer.paths},
                  {"files", answer.files},
                  {"ops", answer.ops},
                  {"left_out", answer.left_out},
                  {"options", answer.options},
                  {"isolated", answer.isolated},
                  {"variables", answer.variables}});
}

Result<OpenAnswer> parse_open_answer(std::string_view line) {
  return parse_answer<OpenAnswer>(line, [](const Json& json) -> Result<OpenAnswer> {
    return OpenAnswer{json.at("targets").get<Pair>(),
                      json.at("versions").get<Pair>(),
                      json.at("paths").get<Pair>(),
                      json.at("files").get<Pair>(),
                      json.at("ops").get<Names>(),
                      json.at("left_out").get<Names>(),
                      json.at("options").get<Pair>(),
                      json.at("isolated").get<std::array<bool, 2>>(),
                      json.at("variables").get<std::array<Names, 2>>()};
  });
}

std::string write_answer(const OutputsAnswer& answer) {
  return text_of({{"lines", answer.lines}, {"tainted", answer.tainted}});
}

Result<OutputsAnswer> parse_outputs_answer(std::string_view line) {
  return parse_answer<OutputsAnswer>(line, [](const Json& json) -> Result<OutputsAnswer> {
    return OutputsAnswer{json.at("lines").get<Names>(), json.at("tainted")};
  });
}

std::string write_answer(const LegalAnswer&) { return text_of({{"legal", true}}); }

Result<LegalAnswer> parse_legal_answer(std::string_view line) {
  return parse_answer<LegalAnswer>(line, [](const Json& json) -> Result<LegalAnswer> {
    json.at("legal").get<bool>();
    return LegalAnswer{};
  });
}

}  // namespace fusediff
