#include "campaign/manifest.h"

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/hash.h"
#include "model/base64.h"
#include "model/case_json.h"
#include "model/inline_bits.h"

namespace fusediff {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kHeaderKey = "fusediff_manifest";

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string hex64(std::uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4) text[i] = kDigits[value & 15];
  return text;
}

ManifestOutput hashed(const RanOutput& ran) {
  ManifestOutput output{ran.name, ran.dtype, ran.shape, hash128(ran.bytes).hex(), ran.agreed, ran.nan_bits, {}, 0, ""};
  if (ran.bytes.size() <= kMostInline) {
    output.bits = ran.bytes;
    return output;
  }
  const std::size_t size = size_of(ran.dtype);
  const auto elements = static_cast<std::int64_t>(ran.bytes.size() / size);
  output.block_elements = (elements + kMostBlocks - 1) / kMostBlocks;
  const std::size_t step = static_cast<std::size_t>(output.block_elements) * size;
  for (std::size_t at = 0; at < ran.bytes.size(); at += step) {
    const std::span<const std::byte> all(ran.bytes);
    output.blocks += hex64(hash128(all.subspan(at, std::min(step, all.size() - at))).low);
  }
  return output;
}

Json json_of(const ManifestLine& line) {
  Json json = {{"case", line.case_hash}, {"file", line.file}, {"op", line.op},        {"dims", line.dims},
               {"side", line.side},      {"path", line.path}, {"status", line.status}};
  if (!line.message.empty()) json["message"] = line.message;
  json["inputs"] = line.inputs;
  json["deterministic"] = line.deterministic;
  if (!line.output) return json;
  const ManifestOutput& o = *line.output;
  json["output"] = o.name;
  json["dtype"] = name_of(o.dtype);
  json["shape"] = o.shape;
  json["hash"] = o.hash;
  json["agree_ulp"] = o.agreed;
  json["nan_bits"] = o.nan_bits;
  if (o.bits) {
    json["bits"] = to_base64(*o.bits);
  } else {
    json["block_elements"] = o.block_elements;
    json["blocks"] = o.blocks;
  }
  return json;
}

Result<ManifestOutput> output_of(const Json& json) {
  ManifestOutput o;
  o.name = json.at("output");
  const std::optional<DType> dtype = dtype_named(json.at("dtype").get<std::string>());
  if (!dtype) return user_error("names a dtype that is none");
  o.dtype = *dtype;
  o.shape = json.at("shape").get<std::vector<std::int64_t>>();
  o.hash = json.at("hash");
  o.agreed = json.at("agree_ulp");
  o.nan_bits = json.at("nan_bits");
  if (const auto bits = json.find("bits"); bits != json.end()) {
    o.bits = from_base64(bits->get<std::string>());
    if (!o.bits || o.bits->size() % size_of(o.dtype) != 0) return user_error("has bits that are no base64 of elements");
    return o;
  }
  o.block_elements = json.at("block_elements");
  o.blocks = json.at("blocks");
  const bool whole = o.block_elements > 0 && o.blocks.size() % 16 == 0;
  if (!whole) return user_error("has blocks that are none");
  return o;
}

Result<ManifestLine> line_of(const Json& json) {
  ManifestLine line;
  line.case_hash = json.at("case");
  line.file = json.at("file");
  line.op = json.at("op");
  line.dims = json.at("dims");
  line.side = json.at("side");
  line.path = json.at("path");
  line.status = json.at("status");
  line.message = json.value("message", "");
  line.inputs = json.at("inputs");
  line.deterministic = json.at("deterministic");
  if (!json.contains("output")) return line;
  Result<ManifestOutput> output = output_of(json);
  if (!output.ok()) return output.error();
  line.output = *std::move(output);
  return line;
}

Json header_of(const Manifest& manifest) {
  Json header = {{kHeaderKey, kManifestVersion}};
  const std::array<const char*, 2> sides = {"target", "against"};
  for (std::size_t s = 0; s < sides.size(); ++s) {
    header[sides[s]] = {{"name", manifest.targets[s]}, {"version", manifest.versions[s]}, {"path", manifest.paths[s]}};
  }
  header["environment"] = Json::parse(manifest.environment, nullptr, false);
  if (header["environment"].is_discarded()) header["environment"] = Json::object();
  return header;
}

Status read_header(const Json& json, Manifest& manifest) {
  const int version = json.at(kHeaderKey);
  if (version > kManifestVersion) {
    return user_error("is of version " + std::to_string(version) + "; this fusediff reads up to " +
                      std::to_string(kManifestVersion));
  }
  const std::array<const char*, 2> sides = {"target", "against"};
  for (std::size_t s = 0; s < sides.size(); ++s) {
    const Json& side = json.at(sides[s]);
    manifest.targets[s] = side.at("name");
    manifest.versions[s] = side.at("version");
    manifest.paths[s] = side.at("path");
  }
  manifest.environment = text_of(json.at("environment"));
  return {};
}

}  // namespace

Case own_call(const Case& c) {
  Case own = with_bits_inline(c);
  own.experiment = {};
  return own;
}

std::string case_hash_of(const Case& c) { return hash128(write_case(own_call(c))).hex(); }

std::string dims_of(const Case& c) {
  std::string text;
  for (const auto& [name, size] : c.dims) text += (text.empty() ? "" : " ") + name + "=" + std::to_string(size);
  return text;
}

std::vector<ManifestLine> lines_of(const Case& c, const RanCase& ran, const std::array<std::string, 2>& paths) {
  std::vector<ManifestLine> lines;
  for (const Side side : kSides) {
    const std::optional<RanSide>& s = ran.sides[index_of(side)];
    if (!s) continue;
    ManifestLine line;
    line.case_hash = case_hash_of(c);
    line.op = c.op;
    line.dims = dims_of(c);
    line.side = side == Side::kTarget ? "target" : "against";
    line.path = paths[index_of(side)];
    line.status = s->status;
    line.message = s->message;
    line.inputs = ran.inputs.hex();
    line.deterministic = s->deterministic;
    if (s->outputs.empty()) lines.push_back(line);
    for (const RanOutput& output : s->outputs) {
      line.output = hashed(output);
      lines.push_back(line);
    }
  }
  return lines;
}

std::string write_manifest_line(const ManifestLine& line) { return text_of(json_of(line)); }

Result<ManifestLine> parse_manifest_line(std::string_view text) {
  try {
    return line_of(Json::parse(text));
  } catch (const std::exception& thrown) {
    return user_error(std::string("is no line of a manifest: ") + thrown.what());
  }
}

std::string write_manifest(Manifest manifest) {
  // Stable: outputs stay in the operator's order.
  std::stable_sort(manifest.lines.begin(), manifest.lines.end(), [](const ManifestLine& a, const ManifestLine& b) {
    return std::tie(a.op, a.case_hash, b.side) < std::tie(b.op, b.case_hash, a.side);  // the target side first
  });
  std::string text = text_of(header_of(manifest)) + "\n";
  for (const ManifestLine& line : manifest.lines) text += write_manifest_line(line) + "\n";
  return text;
}

bool looks_like_manifest(std::string_view text) { return text.starts_with("{\"fusediff_manifest\""); }

Result<Manifest> parse_manifest(std::string_view text) {
  Manifest manifest;
  std::size_t number = 0;
  bool cut = true;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    cut = end == std::string_view::npos;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(cut ? text.size() : end + 1);
    const auto wrong = [&](const std::string& what) {
      return user_error("line " + std::to_string(number) + " " + what);
    };
    ++number;
    try {
      const Json json = Json::parse(line);
      if (number == 1) {
        if (Status header = read_header(json, manifest); !header.ok()) return wrong(header.error().what);
        continue;
      }
      Result<ManifestLine> read = line_of(json);
      if (!read.ok()) return wrong(read.error().what);
      manifest.lines.push_back(*std::move(read));
    } catch (const std::exception&) {
      return wrong(number == 1 ? "is no header of a manifest; the output of fusediff manifest is right"
                               : "is cut off or no line of a manifest");
    }
  }
  if (number == 0) return user_error("is empty; the output of fusediff manifest is right");
  if (cut) return user_error("is cut off in line " + std::to_string(number));
  return manifest;
}

}  // namespace fusediff
