#include "model/finding_json.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace fusediff {
namespace {

using Json = nlohmann::ordered_json;

// Bits go as hex text: JSON numbers lose 64-bit integers in many readers.
std::string hex_bits(std::uint64_t bits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "0x";
  for (int shift = 60; shift >= 0; shift -= 4) {
    if (text.size() > 2 || (bits >> shift) != 0 || shift == 0) text += kDigits[(bits >> shift) & 15];
  }
  return text;
}
std::uint64_t bits_of(const Json& json) { return std::stoull(json.get<std::string>(), nullptr, 16); }

Json bits_json(const std::array<std::uint64_t, 2>& bits) { return Json::array({hex_bits(bits[0]), hex_bits(bits[1])}); }
std::array<std::uint64_t, 2> bits_pair(const Json& json) { return {bits_of(json.at(0)), bits_of(json.at(1))}; }
Json bits_json(const std::array<std::array<std::uint64_t, 2>, 2>& bits) {
  return Json::array({bits_json(bits[0]), bits_json(bits[1])});
}
std::array<std::array<std::uint64_t, 2>, 2> bits_square(const Json& json) {
  return {bits_pair(json.at(0)), bits_pair(json.at(1))};
}

DType dtype_of(const Json& json) {
  const std::optional<DType> dtype = dtype_named(json.get<std::string>());
  if (!dtype) throw std::invalid_argument(json.get<std::string>() + " is no dtype");
  return *dtype;
}
FindingClass class_of(const Json& json) {
  const std::optional<FindingClass> cls = finding_class_named(json.get<std::string>());
  if (!cls) throw std::invalid_argument(json.get<std::string>() + " is no class");
  return *cls;
}
Json optional_json(const std::optional<int>& value) { return value ? Json(*value) : Json(nullptr); }
std::optional<int> optional_int(const Json& json) {
  return json.is_null() ? std::optional<int>() : std::optional<int>(json.get<int>());
}

Json to_json(const Difference& d) {
  Json json = {{"output", d.output},
               {"dtype", name_of(d.dtype)},
               {"stage", optional_json(d.stage)},
               {"class", name_of(d.cls)},
               {"elements", d.elements},
               {"differing", d.differing},
               {"first", d.first},
               {"first_bits", bits_json(d.first_bits)},
               {"worst", d.worst},
               {"worst_bits", bits_json(d.worst_bits)},
               {"max_ulp", hex_bits(d.max_ulp)},
               {"median_ulp", hex_bits(d.median_ulp)},
               {"largest_difference", d.largest},
               {"follows_pick", d.follows_pick}};
  if (is_float(d.dtype)) {
    const auto values = [&](const std::array<std::uint64_t, 2>& bits) {
      return Json::array({float_value(d.dtype, bits[0]), float_value(d.dtype, bits[1])});
    };
    json["first_values"] = values(d.first_bits);
    json["worst_values"] = values(d.worst_bits);
  }
  json["error_ulp"] = d.error ? Json(*d.error) : Json(nullptr);
  json["bound_ulp"] = d.bound ? Json(*d.bound) : Json(nullptr);
  json["judged_by"] = d.judged_by;
  return json;
}

double number_or_infinity(const Json& json) {  // JSON has no infinity: nlohmann writes null
  return json.is_null() ? std::numeric_limits<double>::infinity() : json.get<double>();
}

Difference difference_of(const Json& json) {
  Difference d;
  d.output = json.at("output");
  d.dtype = dtype_of(json.at("dtype"));
  d.stage = optional_int(json.at("stage"));
  d.cls = class_of(json.at("class"));
  d.elements = json.at("elements");
  d.differing = json.at("differing");
  d.first = json.at("first");
  d.first_bits = bits_pair(json.at("first_bits"));
  d.worst = json.at("worst");
  d.worst_bits = bits_pair(json.at("worst_bits"));
  d.max_ulp = bits_of(json.at("max_ulp"));
  d.median_ulp = bits_of(json.at("median_ulp"));
  d.largest = json.at("largest_difference");
  d.follows_pick = json.at("follows_pick");
  if (const Json& error = json.at("error_ulp"); !error.is_null()) {
    d.error = {number_or_infinity(error.at(0)), number_or_infinity(error.at(1))};
  }
  if (const Json& bound = json.at("bound_ulp"); !bound.is_null()) d.bound = bound.get<double>();
  d.judged_by = json.at("judged_by");
  return d;
}

Json to_json(const ByteRanges& b) {
  return {{"output", b.output}, {"follows", b.follows}, {"bytes", b.bytes}, {"total", b.total}, {"ranges", b.ranges}};
}
ByteRanges byte_ranges_of(const Json& json) {
  return {json.at("output"), json.at("follows"), json.at("bytes"), json.at("total"),
          json.at("ranges").get<std::vector<std::pair<std::int64_t, std::int64_t>>>()};
}

Json to_json(const Flip& f) {
  Json stages = Json::array();
  for (const Flip::Stage& s : f.stages) {
    stages.push_back({{"output", s.output}, {"dtype", name_of(s.dtype)}, {"bits", bits_json(s.bits)}});
  }
  Json sums = Json::array();
  for (const Flip::Sum& s : f.sums) sums.push_back({{"output", s.output}, {"sum", s.value}});
  return {{"pick", f.pick},
          {"by", f.by},
          {"by_dtype", name_of(f.by_dtype)},
          {"by_is_known", f.by_is_known},
          {"row", f.row},
          {"slot", f.slot},
          {"rows", f.rows},
          {"picked", f.picked},
          {"rank_bits", bits_json(f.rank_bits)},
          {"gap_ulp", bits_json(f.gap_ulp)},
          {"stages", stages},
          {"sums", sums}};
}
Flip flip_of(const Json& json) {
  Flip f;
  f.pick = json.at("pick");
  f.by = json.at("by");
  f.by_dtype = dtype_of(json.at("by_dtype"));
  f.by_is_known = json.at("by_is_known");
  f.row = json.at("row");
  f.slot = json.at("slot");
  f.rows = json.at("rows");
  f.picked = json.at("picked").get<std::array<std::int64_t, 2>>();
  f.rank_bits = bits_square(json.at("rank_bits"));
  f.gap_ulp = bits_pair(json.at("gap_ulp"));
  for (const Json& s : json.at("stages")) {
    f.stages.push_back({s.at("output"), dtype_of(s.at("dtype")), bits_square(s.at("bits"))});
  }
  for (const Json& s : json.at("sums")) {
    f.sums.push_back({s.at("output"), {number_or_infinity(s.at("sum").at(0)), number_or_infinity(s.at("sum").at(1))}});
  }
  return f;
}

Json to_json(const Rate& r) {
  return {{"runs", r.runs},
          {"differing", r.differing},
          {"pinned_runs", r.pinned_runs},
          {"pinned_differing", r.pinned_differing}};
}
Rate rate_of(const Json& json) {
  return {json.at("runs"), json.at("differing"), json.at("pinned_runs"), json.at("pinned_differing")};
}

Json to_json(const TensorHash& h) {
  Json json = {{"name", h.name}};
  for (const Side side : kSides) {
    const auto& hash = h.hash[index_of(side)];
    json[side == Side::kTarget ? "target" : "against"] = hash ? Json(hash->hex()) : Json(nullptr);
  }
  return json;
}
std::optional<Hash128> hash_of(const Json& json) {
  if (json.is_null()) return std::nullopt;
  const std::string text = json.get<std::string>();
  if (text.size() != 32) throw std::invalid_argument("\"" + text + "\" is no XXH3-128 in 32 hex digits");
  return Hash128{std::stoull(text.substr(0, 16), nullptr, 16), std::stoull(text.substr(16), nullptr, 16)};
}
TensorHash tensor_hash_of(const Json& json) {
  return {json.at("name"), {hash_of(json.at("target")), hash_of(json.at("against"))}};
}

Json to_json(const Evidence& e) {
  return {{"class", name_of(e.cls)},
          {"oracle", e.oracle},
          {"tensor", e.tensor},
          {"stage", optional_json(e.stage)},
          {"accused", !e.accused ? Json(nullptr) : Json(*e.accused == Side::kTarget ? "target" : "against")},
          {"what", e.what},
          {"relation", e.relation}};
}
Evidence evidence_of(const Json& json) {
  Evidence e{class_of(json.at("class")),
             json.at("oracle"),
             json.at("tensor"),
             optional_int(json.at("stage")),
             {},
             json.at("what"),
             json.at("relation")};
  if (!json.at("accused").is_null()) e.accused = json.at("accused") == "target" ? Side::kTarget : Side::kAgainst;
  return e;
}

Json to_json(const CauseRun& c) {
  return {{"what", c.what}, {"calls", c.calls}, {"differing", c.differing}, {"digests", c.digests}};
}
CauseRun cause_of(const Json& json) {
  return {json.at("what"), json.at("calls"), json.at("differing"), json.at("digests")};
}

// JSON has no infinity and no NaN.
Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(std::to_string(value)); }
double number_of(const Json& json) {
  return json.is_string() ? std::stod(json.get<std::string>()) : json.get<double>();
}
Json optional_number(const std::optional<double>& value) { return value ? number_json(*value) : Json(nullptr); }
std::optional<double> optional_number_of(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(number_of(json));
}

Json to_json(const GradientSweep& s) {
  Json own = Json::array();
  for (const auto& [eps, quotient] : s.own) own.push_back({number_json(eps), number_json(quotient)});
  return {{"output", s.output},
          {"index", s.index},
          {"target", optional_number(s.path[0])},
          {"against", optional_number(s.path[1])},
          {"truth", optional_number(s.truth)},
          {"quotient", number_json(s.quotient)},
          {"quotient_error", number_json(s.quotient_error)},
          {"own", own}};
}
GradientSweep sweep_of(const Json& json) {
  GradientSweep s;
  s.output = json.at("output");
  s.index = json.at("index");
  s.path = {optional_number_of(json.at("target")), optional_number_of(json.at("against"))};
  s.truth = optional_number_of(json.at("truth"));
  s.quotient = number_of(json.at("quotient"));
  s.quotient_error = number_of(json.at("quotient_error"));
  for (const Json& point : json.at("own")) s.own.push_back({number_of(point.at(0)), number_of(point.at(1))});
  return s;
}

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

Json finding_json(const Finding& f) {
  return {{"fusediff_finding", kFindingVersion},
          {"signature", signature_of(f)},
          {"class", name_of(f.cls)},
          {"experiment", f.experiment},
          {"oracle", f.oracle},
          {"relation", f.relation},
          {"op", f.op},
          {"targets", f.targets},
          {"paths", f.paths},
          {"dtype", f.dtype},
          {"output", f.output},
          {"stage", optional_json(f.stage)},
          {"stage_outputs", f.stage_outputs},
          {"evidence", list_json(f.evidence)},
          {"differences", list_json(f.differences)},
          {"byte_ranges", list_json(f.byte_ranges)},
          {"flips", list_json(f.flips)},
          {"rates", {{"target", to_json(f.rates[0])}, {"against", to_json(f.rates[1])}}},
          {"columns", f.columns},
          {"causes", list_json(f.causes)},
          {"conclusion", f.conclusion},
          {"sweeps", list_json(f.sweeps)},
          {"influence", f.influence},
          {"notes", f.notes},
          {"inputs", list_json(f.input_hashes)},
          {"outputs", list_json(f.output_hashes)}};
}

Finding finding_of(const Json& json) {
  const int version = json.at("fusediff_finding");
  if (version > kFindingVersion) {
    throw std::invalid_argument("version " + std::to_string(version) + " is newer than " +
                                std::to_string(kFindingVersion) + ", the newest that this fusediff reads");
  }
  Finding f;
  f.cls = class_of(json.at("class"));
  f.experiment = json.at("experiment");
  f.oracle = json.at("oracle");
  f.relation = json.at("relation");
  f.op = json.at("op");
  f.targets = json.at("targets").get<std::array<std::string, 2>>();
  f.paths = json.at("paths").get<std::array<std::string, 2>>();
  f.dtype = json.at("dtype");
  f.output = json.at("output");
  f.stage = optional_int(json.at("stage"));
  f.stage_outputs = json.at("stage_outputs").get<std::vector<std::string>>();
  f.evidence = list_of(json.at("evidence"), evidence_of);
  f.differences = list_of(json.at("differences"), difference_of);
  f.byte_ranges = list_of(json.at("byte_ranges"), byte_ranges_of);
  f.flips = list_of(json.at("flips"), flip_of);
  f.rates = {rate_of(json.at("rates").at("target")), rate_of(json.at("rates").at("against"))};
  if (json.contains("causes")) {  // not in findings of the first releases
    f.columns = json.at("columns").get<std::array<std::string, 2>>();
    f.causes = list_of(json.at("causes"), cause_of);
    f.conclusion = json.at("conclusion");
    f.sweeps = list_of(json.at("sweeps"), sweep_of);
  }
  f.influence = json.at("influence").get<std::vector<std::string>>();
  f.notes = json.at("notes").get<std::vector<std::string>>();
  f.input_hashes = list_of(json.at("inputs"), tensor_hash_of);
  f.output_hashes = list_of(json.at("outputs"), tensor_hash_of);
  return f;
}

std::string dump(const Json& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

// The library's exceptions end here.
template <typename Read>
auto guarded(std::string_view text, const char* what, Read read) -> Result<decltype(read(Json()))> {
  try {
    return read(Json::parse(text));
  } catch (const std::exception& e) {
    return user_error(std::string("not ") + what + " of fusediff: " + e.what());
  }
}

}  // namespace

std::string write_finding(const Finding& finding, int indent) { return dump(finding_json(finding), indent); }

Result<Finding> parse_finding(std::string_view json) { return guarded(json, "a finding", finding_of); }

std::string write_verdict(const Verdict& verdict, int indent) {
  Json json = {{"verdict", name_of(verdict.kind)}, {"reason", verdict.reason}};
  json["finding"] = verdict.finding ? finding_json(*verdict.finding) : Json(nullptr);
  return dump(json, indent);
}

Result<Verdict> parse_verdict(std::string_view text) {
  return guarded(text, "a verdict", [](const Json& json) {
    Verdict verdict;
    const std::string name = json.at("verdict");
    bool known = false;
    for (int kind = 0; kind <= static_cast<int>(Verdict::Kind::kHarnessError); ++kind) {
      if (name_of(static_cast<Verdict::Kind>(kind)) != name) continue;
      verdict.kind = static_cast<Verdict::Kind>(kind);
      known = true;
    }
    if (!known) throw std::invalid_argument("\"" + name + "\" is no verdict");
    verdict.reason = json.at("reason");
    if (!json.at("finding").is_null()) verdict.finding = finding_of(json.at("finding"));
    return verdict;
  });
}

}  // namespace fusediff
