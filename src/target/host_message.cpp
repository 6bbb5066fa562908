#include "target/host_message.h"

#include <nlohmann/json.hpp>

#include "target/json_fields.h"

namespace fusediff {
namespace {

using Json = nlohmann::json;

// Names of a schema are plain; anything else is spelled by the library.
void append_text(std::string& text, std::string_view value) {
  bool plain = true;
  for (const char c : value) plain = plain && c >= ' ' && c < 127 && c != '"' && c != '\\';
  if (plain) {
    text += '"';
    text += value;
    text += '"';
  } else {
    text += Json(std::string(value)).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

void append_key(std::string& text, std::string_view key) {
  if (text.back() != '{') text += ',';
  text += '"';
  text += key;
  text += "\":";
}

void append_number(std::string& text, std::string_view key, std::uint64_t value) {
  append_key(text, key);
  text += std::to_string(value);
}

void append_list(std::string& text, std::string_view key, const std::int64_t* values, int count) {
  append_key(text, key);
  text += '[';
  for (int i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    text += std::to_string(values[i]);
  }
  text += ']';
}

void append_attr(std::string& text, const fusediff_attr& attr) {
  append_text(text, attr.name);
  text += ':';
  if (attr.kind == FUSEDIFF_INT) {
    text += std::to_string(attr.i);
  } else if (attr.kind == FUSEDIFF_FLOAT) {
    // JSON has no infinities: their bits travel.
    std::uint64_t bits = 0;
    static_assert(sizeof bits == sizeof attr.f);
    __builtin_memcpy(&bits, &attr.f, sizeof bits);
    text += "{\"f64\":" + std::to_string(bits) + "}";
  } else {
    append_text(text, attr.s);
  }
}

void append_tensors(std::string& text, std::string_view key, const fusediff_tensor* tensors, std::size_t count,
                    const std::function<std::uint64_t(const void*)>& where) {
  append_key(text, key);
  text += '[';
  for (std::size_t i = 0; i < count; ++i) {
    const fusediff_tensor& tensor = tensors[i];
    if (i > 0) text += ',';
    text += '{';
    append_key(text, "name");
    append_text(text, tensor.name);
    append_number(text, "dtype", static_cast<std::uint64_t>(tensor.dtype));
    append_list(text, "shape", tensor.shape, tensor.rank);
    append_list(text, "stride", tensor.stride, tensor.rank);
    if (tensor.data != nullptr) append_number(text, "at", where(tensor.data));
    text += '}';
  }
  text += ']';
}

std::string start_of(std::string_view what, std::uint64_t context) {
  std::string text = "{\"do\":\"";
  text += what;
  text += '"';
  append_number(text, "context", context);
  return text;
}

}  // namespace

std::string write_open(std::string_view options) {
  std::string text = "{\"do\":\"open\",\"options\":";
  append_text(text, options);
  return text + "}";
}

std::string write_step(std::string_view what, std::uint64_t context, std::uint64_t memory, std::uint64_t at,
                       std::uint64_t bytes) {
  std::string text = start_of(what, context);
  if (memory != 0) append_number(text, "memory", memory);
  if (at != 0) append_number(text, "at", at);
  if (bytes != 0) append_number(text, "bytes", bytes);
  return text + "}";
}

std::string write_call(std::string_view what, std::uint64_t context, const fusediff_call& call, const void* cover,
                       const std::function<std::uint64_t(const void*)>& where) {
  std::string text = start_of(what, context);
  text.reserve(1024);
  append_key(text, "op");
  append_text(text, call.op);
  append_key(text, "path");
  append_text(text, call.path);
  append_key(text, "attrs");
  text += '{';
  for (std::size_t i = 0; i < call.attr_count; ++i) {
    if (i > 0) text += ',';
    append_attr(text, call.attrs[i]);
  }
  text += '}';
  append_tensors(text, "inputs", call.inputs, call.input_count, where);
  append_tensors(text, "outputs", call.outputs, call.output_count, where);
  if (call.workspace != nullptr) append_number(text, "workspace", where(call.workspace));
  append_number(text, "workspace_bytes", call.workspace_size);
  if (cover != nullptr) append_number(text, "cover", where(cover));
  return text + "}";
}

HostAnswer parse_host_answer(std::string_view text) {
  HostAnswer answer;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) {
    answer.status = FUSEDIFF_FAILED;
    answer.text = "the host process answered something that is not understood";
    return answer;
  }
  if (json.contains("threw")) answer.kind = HostAnswer::Kind::kThrew;
  answer.status = static_cast<int>(number_in(json, "status"));
  answer.text = text_in(json, answer.kind == HostAnswer::Kind::kThrew ? "threw" : "error");
  answer.note = text_in(json, "note");
  answer.number = number_in(json, "number");
  return answer;
}

}  // namespace fusediff
