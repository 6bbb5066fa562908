#include "host/served.h"

#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>

#include "host/fault_report.h"
#include "target/float_state.h"
#include "target/json_fields.h"

namespace fusediff {
namespace {

using Json = nlohmann::ordered_json;  // attributes come in the order of the schema

constexpr std::size_t kMostKnown = 64;

void* pointer_of(std::uint64_t number) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number)); }

std::string spelled(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Everything that a fusediff_call points to.
struct Tensors {
  std::deque<std::string> names;
  std::deque<std::vector<std::int64_t>> numbers;
  std::vector<fusediff_tensor> views;

  void read(const Json& list, const ServedTarget& target) {
    for (const Json& one : list) {
      fusediff_tensor view{};
      view.name = names.emplace_back(text_in(one, "name")).c_str();
      const std::vector<std::int64_t>& shape = numbers.emplace_back(one.at("shape"));
      view.rank = static_cast<std::int32_t>(shape.size());
      view.shape = shape.data();
      view.stride = numbers.emplace_back(one.at("stride")).data();
      view.dtype = static_cast<std::int32_t>(number_in(one, "dtype"));
      if (one.contains("at")) {
        const std::uint64_t at = number_in(one, "at");
        view.data = target.owns_memory() ? pointer_of(at) : target.region + at;
      }
      views.push_back(view);
    }
  }
};

}  // namespace

struct ServedChannel::Parsed {
  std::string what;
  Json json;
  void* context = nullptr;
  std::deque<std::string> words;
  std::vector<fusediff_attr> attrs;
  Tensors inputs;
  Tensors outputs;
  fusediff_call call{};

  Parsed(const Json& message, const ServedTarget& target)
      : what(text_in(message, "do")), json(message), context(pointer_of(number_in(message, "context"))) {
    if (!json.contains("op")) return;
    for (const auto& [name, value] : json.at("attrs").items()) read_attr(name, value);
    inputs.read(json.at("inputs"), target);
    outputs.read(json.at("outputs"), target);
    call.struct_size = sizeof(fusediff_call);
    call.op = words.emplace_back(text_in(json, "op")).c_str();
    call.path = words.emplace_back(text_in(json, "path")).c_str();
    call.attrs = attrs.data();
    call.attr_count = attrs.size();
    call.inputs = inputs.views.data();
    call.input_count = inputs.views.size();
    call.outputs = outputs.views.data();
    call.output_count = outputs.views.size();
    call.workspace_size = number_in(json, "workspace_bytes");
    if (json.contains("workspace")) {
      const std::uint64_t at = number_in(json, "workspace");
      call.workspace = target.owns_memory() ? pointer_of(at) : target.region + at;
    }
  }

  void read_attr(const std::string& name, const Json& value) {
    fusediff_attr attr{};
    attr.name = words.emplace_back(name).c_str();
    if (value.is_string()) {
      attr.kind = FUSEDIFF_STRING;
      attr.s = words.emplace_back(value.get<std::string>()).c_str();
    } else if (value.is_object()) {
      attr.kind = FUSEDIFF_FLOAT;
      const std::uint64_t bits = number_in(value, "f64");
      std::memcpy(&attr.f, &bits, sizeof attr.f);
    } else {
      attr.kind = FUSEDIFF_INT;
      attr.i = value.get<std::int64_t>();
    }
    attrs.push_back(attr);
  }
};

ServedChannel::ServedChannel(const ServedTarget& target) : target_(target) {}
ServedChannel::~ServedChannel() = default;

const ServedChannel::Parsed& ServedChannel::parsed(std::string_view message) {
  std::string key(message);
  if (const auto at = known_.find(key); at != known_.end()) return *at->second;
  if (known_.size() >= kMostKnown) known_.clear();
  auto made = std::make_unique<Parsed>(Json::parse(message), target_);
  return *(known_[std::move(key)] = std::move(made));
}

std::string ServedChannel::answer_to(const Parsed& message) {
  const fusediff_target_v1& table = *target_.table;
  const std::string& what = message.what;
  int status = FUSEDIFF_OK;
  std::uint64_t number = 0;
  const auto memory = [&] { return pointer_of(number_in(message.json, "memory")); };
  const std::size_t bytes = number_in(message.json, "bytes");
  std::byte* const at = target_.region + number_in(message.json, "at");
  if (what == "run") {
    if (message.json.contains("cover")) veil_.cover(target_.region + number_in(message.json, "cover"));
    status = table.run(message.context, &message.call);
    veil_.lift();
  } else if (what == "workspace_bytes") {
    std::size_t needed = 0;
    if (table.workspace_bytes != nullptr) status = table.workspace_bytes(message.context, &message.call, &needed);
    number = needed;
  } else if (what == "open") {
    void* context = nullptr;
    status = table.open(text_in(message.json, "options").c_str(), &context);
    number = reinterpret_cast<std::uintptr_t>(context);
  } else if (what == "close") {
    table.close(message.context);
  } else if (what == "guard") {
    close_guards(at, bytes);
  } else if (what == "alloc") {
    number = reinterpret_cast<std::uintptr_t>(table.alloc(message.context, bytes));
  } else if (what == "release") {
    table.release(message.context, memory());
  } else if (what == "write") {
    status = table.write(message.context, memory(), at, bytes);
  } else if (what == "read") {
    status = table.read(message.context, at, memory(), bytes);
  }
  const bool noted = what == "run" && target_.note != nullptr;
  const bool unsaid = status != FUSEDIFF_OK || (what == "alloc" && number == 0);
  if (!unsaid && !noted && number == 0) return "{}";
  Json answer = {{"status", status}, {"number", number}};
  if (unsaid && table.last_error != nullptr) {
    const char* said = table.last_error();
    if (said != nullptr) answer["error"] = std::string(said, ::strnlen(said, 1023));
  }
  if (noted) {
    const char* said = target_.note();
    if (said != nullptr) answer["note"] = std::string(said, ::strnlen(said, 255));
  }
  return spelled(answer);
}

std::string ServedChannel::answer(std::string_view message) {
  const FloatState before;
  std::string answer;
  try {
    answer = answer_to(parsed(message));
  } catch (const std::exception& thrown) {
    answer = spelled({{"threw", thrown.what()}});
  } catch (...) {
    answer = R"({"threw": "not a std::exception"})";
  }
  before.restore();
  return answer;
}

}  // namespace fusediff
