#include "model/safetensors.h"

#include <array>
#include <fstream>
#include <functional>
#include <utility>

#include "model/json_text.h"
#include "model/json_tree.h"
#include "model/quote.h"

namespace fusediff {

namespace {

constexpr std::size_t kPrefix = 8;  // bytes of the header length
constexpr std::uint64_t kMaxHeader = std::uint64_t{16} << 20;
constexpr std::uint64_t kAlign = 8;  // the header is padded with spaces to this
constexpr JsonLimits kLimits = {kMaxHeader, 8, 1 << 20};

constexpr std::array<std::pair<DType, std::string_view>, 12> kNames = {{{DType::kF64, "F64"},
                                                                        {DType::kF32, "F32"},
                                                                        {DType::kF16, "F16"},
                                                                        {DType::kBF16, "BF16"},
                                                                        {DType::kF8E4M3FN, "F8_E4M3"},
                                                                        {DType::kF8E5M2, "F8_E5M2"},
                                                                        {DType::kI64, "I64"},
                                                                        {DType::kI32, "I32"},
                                                                        {DType::kI16, "I16"},
                                                                        {DType::kI8, "I8"},
                                                                        {DType::kU8, "U8"},
                                                                        {DType::kBool, "BOOL"}}};

struct Entry {
  StoredTensor tensor;  // without bytes
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

std::uint64_t header_length(std::string_view prefix) {
  std::uint64_t length = 0;
  for (std::size_t i = kPrefix; i-- > 0;) length = length << 8 | static_cast<unsigned char>(prefix[i]);
  return length;
}

DType read_dtype_name(const JsonView& at, JsonTrouble& trouble) {
  const std::string text = read_string(at, trouble, "a dtype");
  std::vector<std::string> legal;
  for (const auto& [dtype, name] : kNames) {
    if (name == text) return dtype;
    legal.emplace_back(name);
  }
  trouble.at(at, not_one_of(text, "a dtype that fusediff reads", legal));
  return DType::kF32;
}

Entry read_entry(const JsonView& at, std::uint64_t data_bytes, JsonTrouble& trouble) {
  Entry entry;
  entry.tensor.name = std::string(at.key());
  JsonObject object(at, trouble, "a tensor");
  if (const auto dtype = object.need("dtype")) entry.tensor.dtype = read_dtype_name(*dtype, trouble);
  std::uint64_t bytes = size_of(entry.tensor.dtype);
  bool overflow = false;
  const auto shape = object.need("shape");
  if (shape && expect_array(*shape, trouble, "a shape")) {
    for (const JsonView size : *shape) {
      entry.tensor.shape.push_back(read_integer(size, trouble, "a size", 0));
      const auto factor = static_cast<std::uint64_t>(entry.tensor.shape.back());
      overflow = __builtin_mul_overflow(bytes, factor, &bytes) || overflow;
    }
  }
  const auto offsets = object.need("data_offsets");
  if (offsets && expect_array(*offsets, trouble, "a pair of offsets", 2, 2)) {
    auto item = offsets->begin();
    entry.begin = read_unsigned(*item, trouble, "an offset");
    entry.end = read_unsigned(*++item, trouble, "an offset");
    const bool inside = entry.begin <= entry.end && entry.end <= data_bytes;
    if (!inside) trouble.at(*offsets, "leaves the file, which has " + std::to_string(data_bytes) + " bytes of data");
    if (inside && (overflow || entry.end - entry.begin != bytes)) trouble.at(*offsets, "does not fit shape and dtype");
  }
  object.finish();
  return entry;
}

Result<std::vector<Entry>> read_header(std::string_view json, std::uint64_t data_bytes) {
  Result<JsonTree> tree = JsonTree::parse(json, kLimits);
  if (!tree.ok()) return tree.error();
  JsonTrouble trouble;
  std::vector<Entry> entries;
  if (expect_object(tree->root(), trouble, "a safetensors header")) {
    for (const JsonView item : tree->root()) {
      if (item.key() != "__metadata__") entries.push_back(read_entry(item, data_bytes, trouble));
      if (trouble.any()) break;
    }
  }
  if (trouble.any()) return trouble.error();
  return entries;
}

// The length of the header, checked against what the file has.
Result<std::uint64_t> check_length(std::string_view prefix, std::uint64_t file_bytes) {
  if (file_bytes < kPrefix || prefix.size() < kPrefix) return user_error("not safetensors: shorter than 8 bytes");
  const std::uint64_t length = header_length(prefix);
  if (length <= kMaxHeader && length <= file_bytes - kPrefix) return length;
  return user_error("not safetensors: a header of " + std::to_string(length) + " bytes in a file of " +
                    std::to_string(file_bytes));
}

Error in_file(const std::filesystem::path& file, const std::string& what) {
  return user_error(quote(file.string()) + ": " + what);
}

// The entries of a file's header, and where the data begins.
struct Front {
  std::vector<Entry> entries;
  std::uint64_t data = 0;
};

Result<Front> read_front(std::ifstream& stream, std::uint64_t file_bytes) {
  std::string prefix(kPrefix, '\0');
  stream.read(prefix.data(), kPrefix);
  const Result<std::uint64_t> length =
      check_length(prefix.substr(0, static_cast<std::size_t>(stream.gcount())), file_bytes);
  if (!length.ok()) return length.error();
  std::string header(*length, '\0');
  if (!stream.read(header.data(), static_cast<std::streamsize>(*length))) return user_error("cannot be read");
  Result<std::vector<Entry>> entries = read_header(header, file_bytes - kPrefix - *length);
  if (!entries.ok()) return entries.error();
  return Front{*std::move(entries), kPrefix + *length};
}

Result<StoredTensor> read_from(std::ifstream& stream, std::uint64_t file_bytes, std::string_view name) {
  Result<Front> front = read_front(stream, file_bytes);
  if (!front.ok()) return front.error();
  std::vector<std::string> legal;
  for (Entry& entry : front->entries) {
    legal.push_back(entry.tensor.name);
    if (entry.tensor.name != name) continue;
    entry.tensor.bytes.resize(entry.end - entry.begin);
    stream.seekg(static_cast<std::streamoff>(front->data + entry.begin));
    stream.read(reinterpret_cast<char*>(entry.tensor.bytes.data()),
                static_cast<std::streamsize>(entry.tensor.bytes.size()));
    if (!stream) return user_error("cannot be read");
    return std::move(entry.tensor);
  }
  return user_error(not_one_of(name, "a tensor in it", legal));
}

Result<std::vector<StoredSpan>> spans_from(std::ifstream& stream, std::uint64_t file_bytes) {
  Result<Front> front = read_front(stream, file_bytes);
  if (!front.ok()) return front.error();
  std::vector<StoredSpan> spans;
  for (Entry& entry : front->entries) {
    spans.push_back({std::move(entry.tensor.name), entry.tensor.dtype, std::move(entry.tensor.shape),
                     front->data + entry.begin, entry.end - entry.begin});
  }
  return spans;
}

// Opens a regular file and lets `read` at it; what is wrong is said with the file's name.
template <typename T>
Result<T> with_file(const std::filesystem::path& file,
                    const std::function<Result<T>(std::ifstream&, std::uint64_t)>& read) {
  std::error_code error;
  const auto status = std::filesystem::symlink_status(file, error);
  if (status.type() != std::filesystem::file_type::regular) {
    return in_file(file, std::filesystem::exists(status) ? "is not a regular file" : "there is no such file");
  }
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  std::ifstream stream(file, std::ios::binary);
  if (error || !stream) return in_file(file, "cannot be read");
  Result<T> result = read(stream, size);
  if (!result.ok()) return in_file(file, result.error().what);
  return result;
}

}  // namespace

Result<StoredTensor> read_safetensor(const std::filesystem::path& file, std::string_view name) {
  return with_file<StoredTensor>(
      file, [name](std::ifstream& stream, std::uint64_t size) { return read_from(stream, size, name); });
}

Result<std::vector<StoredSpan>> list_safetensors(const std::filesystem::path& file) {
  return with_file<std::vector<StoredSpan>>(file, spans_from);
}

Result<std::vector<StoredTensor>> parse_safetensors(std::string_view file) {
  const Result<std::uint64_t> length = check_length(file.substr(0, kPrefix), file.size());
  if (!length.ok()) return length.error();
  const std::string_view data = file.substr(kPrefix + *length);
  Result<std::vector<Entry>> entries = read_header(file.substr(kPrefix, *length), data.size());
  if (!entries.ok()) return entries.error();
  std::vector<StoredTensor> tensors;
  for (Entry& entry : *entries) {
    const auto bytes = std::as_bytes(std::span(data.substr(entry.begin, entry.end - entry.begin)));
    entry.tensor.bytes.assign(bytes.begin(), bytes.end());
    tensors.push_back(std::move(entry.tensor));
  }
  return tensors;
}

std::string safetensors_front(std::span<const StoredSpan> tensors) {
  std::string header;
  JsonText json(header, -1);
  std::uint64_t offset = 0;
  json.open('{');
  for (const StoredSpan& tensor : tensors) {
    std::string_view dtype;
    for (const auto& [known, name] : kNames) dtype = known == tensor.dtype ? name : dtype;
    json.key(tensor.name);
    json.open('{');
    json.key("dtype");
    json.string(dtype);
    json.key("shape");
    json.integers(tensor.shape);
    json.key("data_offsets");
    json.integers(std::vector<std::uint64_t>{offset, offset + tensor.bytes});
    json.close('}');
    offset += tensor.bytes;
  }
  json.close('}');
  while ((kPrefix + header.size()) % kAlign != 0) header += ' ';
  std::string front;
  for (std::size_t i = 0; i < kPrefix; ++i) front += static_cast<char>(header.size() >> (8 * i) & 255);
  return front + header;
}

std::string write_safetensors(std::span<const StoredTensor> tensors) {
  std::vector<StoredSpan> spans;
  for (const StoredTensor& tensor : tensors) {
    spans.push_back({tensor.name, tensor.dtype, tensor.shape, 0, tensor.bytes.size()});
  }
  std::string file = safetensors_front(spans);
  for (const StoredTensor& tensor : tensors) {
    file.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  return file;
}

}  // namespace fusediff
