#include "model/recording_json.h"

#include <bit>
#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace fusediff {
namespace {

using Json = nlohmann::json;

constexpr std::array<const char*, 3> kPlaces = {"end", "start", "middle"};

template <typename T>
T needed(std::optional<T> value, const Json& json) {
  if (!value) throw std::invalid_argument(json.dump() + " is not known");
  return *value;
}

Place place_of(const Json& json) {
  for (std::size_t i = 0; i < kPlaces.size(); ++i) {
    if (json == kPlaces[i]) return static_cast<Place>(i);
  }
  throw std::invalid_argument(json.dump() + " is no place");
}

Json to_json(const Tensor& t) {
  return {{"name", t.name},
          {"dtype", name_of(t.dtype)},
          {"shape", t.shape},
          {"stride", t.stride},
          {"align", t.align},
          {"offset", t.offset},
          {"place", kPlaces[static_cast<std::size_t>(t.place)]},
          {"on", t.on},
          {"present", t.present}};
}

Tensor tensor_of(const Json& json) {
  Tensor t;
  t.name = json.at("name");
  t.dtype = needed(dtype_named(json.at("dtype").get<std::string>()), json.at("dtype"));
  t.shape = json.at("shape").get<std::vector<std::int64_t>>();
  t.stride = json.at("stride").get<std::vector<std::int64_t>>();
  t.align = json.at("align");
  t.offset = json.at("offset");
  t.place = place_of(json.at("place"));
  t.on = json.at("on");
  t.present = json.at("present");
  return t;
}

// A double goes by its bits: JSON has neither NaN nor infinity.
Json to_json(const CallAttr& attr) {
  Json json = {{"name", attr.name}};
  if (const auto* integer = std::get_if<std::int64_t>(&attr.value)) json["int"] = *integer;
  if (const auto* real = std::get_if<double>(&attr.value)) json["f64_bits"] = std::bit_cast<std::uint64_t>(*real);
  if (const auto* text = std::get_if<std::string>(&attr.value)) json["string"] = *text;
  return json;
}

CallAttr attr_of(const Json& json) {
  CallAttr attr{json.at("name"), {}};
  if (const auto at = json.find("int"); at != json.end()) {
    attr.value = at->get<std::int64_t>();
  } else if (const auto bits = json.find("f64_bits"); bits != json.end()) {
    attr.value = std::bit_cast<double>(bits->get<std::uint64_t>());
  } else {
    attr.value = json.at("string").get<std::string>();
  }
  return attr;
}

Json to_json(const RecordedCall& call);
Json to_json(const SameBits& same);

template <typename T>
Json list_json(const std::vector<T>& items) {
  Json json = Json::array();
  for (const T& item : items) json.push_back(to_json(item));
  return json;
}

template <typename Read>
auto list_of(const Json& json, Read read) {
  std::vector<decltype(read(json))> items;
  for (const Json& item : json) items.push_back(read(item));
  return items;
}

Json to_json(const RecordedCall& call) {
  return {{"op", call.op},
          {"path", call.path},
          {"attrs", list_json(call.attrs)},
          {"inputs", list_json(call.inputs)},
          {"outputs", list_json(call.outputs)},
          {"stored", call.stored},
          {"pinned", call.pinned}};
}

RecordedCall call_of(const Json& json) {
  RecordedCall call;
  call.op = json.at("op");
  call.path = json.at("path");
  call.attrs = list_of(json.at("attrs"), attr_of);
  call.inputs = list_of(json.at("inputs"), tensor_of);
  call.outputs = list_of(json.at("outputs"), tensor_of);
  call.stored = json.at("stored").get<std::vector<std::string>>();
  call.pinned = json.at("pinned");
  if (call.stored.size() != call.inputs.size()) throw std::invalid_argument("names are not those of the inputs");
  return call;
}

Json to_json(const SameBits& same) {
  return {{"output", same.output}, {"call", same.call}, {"elements", same.elements}};
}

SameBits same_of(const Json& json) {
  SameBits same;
  same.output = json.at("output");
  same.call = json.at("call").get<std::array<int, 2>>();
  same.elements = json.at("elements").get<std::array<std::vector<std::int64_t>, 2>>();
  return same;
}

Json experiment_json(const Experiment& e) {
  return {{"kind", name_of(e.kind)}, {"count", e.count}, {"rounds", e.rounds},
          {"seed", e.seed},          {"row", e.row},     {"relation", name_of(e.relation)}};
}

Experiment experiment_of(const Json& json) {
  Experiment e;
  e.kind = needed(experiment_named(json.at("kind").get<std::string>()), json.at("kind"));
  e.count = json.at("count");
  e.rounds = json.at("rounds");
  e.seed = json.at("seed");
  e.row = json.at("row");
  e.relation = needed(relation_named(json.at("relation").get<std::string>()), json.at("relation"));
  return e;
}

}  // namespace

std::string write_recording(const Recording& recording) {
  const Json json = {{"experiment", experiment_json(recording.experiment)},
                     {"calls", {list_json(recording.calls[0]), list_json(recording.calls[1])}},
                     {"same", list_json(recording.same)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Recording> parse_recording(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    Recording recording;
    recording.experiment = experiment_of(json.at("experiment"));
    for (const std::size_t side : {0u, 1u}) recording.calls[side] = list_of(json.at("calls").at(side), call_of);
    recording.same = list_of(json.at("same"), same_of);
    for (const SameBits& same : recording.same) {
      for (const int call : same.call) {
        if (call < 0 || static_cast<std::size_t>(call) >= recording.calls[0].size())
          return user_error("a recording: there is no call " + std::to_string(call));
      }
      if (same.elements[0].size() != same.elements[1].size())
        return user_error("a recording: elements that cannot be laid beside each other");
    }
    return recording;
  } catch (const std::exception& thrown) {
    return user_error(std::string("a recording: ") + thrown.what());
  }
}

}  // namespace fusediff
