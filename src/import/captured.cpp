#include "import/captured.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <system_error>

#include "import/npy.h"
#include "import/npz.h"
#include "model/quote.h"
#include "model/safetensors.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

Error in_file(const fs::path& file, const std::string& what) { return user_error(quote(file.string()) + ": " + what); }

Result<std::uint64_t> size_of_file(const fs::path& file) {
  std::error_code code;
  if (!fs::is_regular_file(file, code)) {
    return in_file(file, fs::exists(file, code) ? "is not a regular file" : "there is no such file");
  }
  const std::uintmax_t size = fs::file_size(file, code);
  if (code) return in_file(file, "cannot be read");
  return std::uint64_t{size};
}

ExactRead reader_of(std::ifstream& stream) {
  return [&stream](char* into, std::size_t bytes) -> Status {
    if (stream.read(into, static_cast<std::streamsize>(bytes))) return {};
    return user_error("is cut off");
  };
}

// Hands `bytes` from where the stream stands to the sink.
Status copy_pieces(std::ifstream& stream, std::uint64_t bytes, const PieceSink& sink) {
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kPieceBytes)));
  while (bytes > 0) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, piece.size()));
    if (!stream.read(reinterpret_cast<char*>(piece.data()), static_cast<std::streamsize>(count))) {
      return user_error("is cut off");
    }
    if (Status took = sink(std::span(piece).first(count)); !took.ok()) return took;
    bytes -= count;
  }
  return {};
}

Result<CapturedTensor> npy_header(std::ifstream& stream, const fs::path& file, std::uint64_t size) {
  Result<CapturedTensor> tensor = read_npy_header(reader_of(stream));
  if (!tensor.ok()) return in_file(file, tensor.error().what);
  tensor->name = file.stem().string();
  if (!tensor->problem.empty()) return tensor;
  const std::uint64_t there = size - static_cast<std::uint64_t>(stream.tellg());
  if (there != tensor->bytes()) {
    return in_file(file, "holds " + std::to_string(there) + " bytes of elements, its header says " +
                             std::to_string(tensor->bytes()));
  }
  return tensor;
}

Result<std::vector<CapturedTensor>> list_npy(const fs::path& file) {
  const Result<std::uint64_t> size = size_of_file(file);
  if (!size.ok()) return size.error();
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return in_file(file, "cannot be read");
  Result<CapturedTensor> tensor = npy_header(stream, file, *size);
  if (!tensor.ok()) return tensor.error();
  if (tensor->problem.empty() && tensor->shape.empty()) {
    tensor->value.resize(tensor->type.size);
    if (Status got = reader_of(stream)(reinterpret_cast<char*>(tensor->value.data()), tensor->value.size()); !got.ok())
      return in_file(file, got.error().what);
  }
  return std::vector<CapturedTensor>{*std::move(tensor)};
}

Status read_npy(const fs::path& file, std::span<const CapturedTensor> tensors, const SinkOf& sink_of) {
  const Result<std::uint64_t> size = size_of_file(file);
  if (!size.ok()) return size.error();
  std::ifstream stream(file, std::ios::binary);
  const Result<CapturedTensor> tensor = npy_header(stream, file, *size);
  if (!tensor.ok()) return tensor.error();
  if (tensors.size() != 1 || tensor->shape != tensors[0].shape) return in_file(file, "has changed meanwhile");
  const PieceSink sink = sink_of(0);
  if (!sink) return {};
  if (Status copied = copy_pieces(stream, tensor->bytes(), sink); !copied.ok()) {
    return in_file(file, copied.error().what);
  }
  return {};
}

Result<std::vector<CapturedTensor>> list_stored(const fs::path& file) {
  const Result<std::vector<StoredSpan>> spans = list_safetensors(file);
  if (!spans.ok()) return spans.error();
  std::vector<CapturedTensor> tensors;
  for (const StoredSpan& span : *spans) {
    CapturedTensor tensor;
    tensor.name = span.name;
    tensor.type.dtype = span.dtype;
    tensor.type.size = size_of(span.dtype);
    tensor.type.text = std::string(name_of(span.dtype));
    tensor.shape = span.shape;
    if (const std::string wrong = wrong_in_name(span.name); !wrong.empty()) return in_file(file, wrong);
    if (span.shape.empty()) {
      Result<StoredTensor> one = read_safetensor(file, span.name);
      if (!one.ok()) return one.error();
      tensor.value = std::move(one->bytes);
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Status read_stored(const fs::path& file, std::span<const CapturedTensor> tensors, const SinkOf& sink_of) {
  const Result<std::vector<StoredSpan>> spans = list_safetensors(file);
  if (!spans.ok()) return spans.error();
  if (spans->size() != tensors.size()) return in_file(file, "has changed meanwhile");
  std::ifstream stream(file, std::ios::binary);
  for (std::size_t i = 0; i < spans->size(); ++i) {
    const PieceSink sink = sink_of(i);
    if (!sink) continue;
    const StoredSpan& span = (*spans)[i];
    if (span.name != tensors[i].name || span.shape != tensors[i].shape) return in_file(file, "has changed meanwhile");
    stream.seekg(static_cast<std::streamoff>(span.offset));
    if (Status copied = copy_pieces(stream, span.bytes, sink); !copied.ok()) {
      return in_file(file, quote(span.name) + ": " + copied.error().what);
    }
  }
  return {};
}

bool is_npy(std::string_view first) { return first.starts_with(kNpyMagic); }
bool is_zip(std::string_view first) { return first.starts_with("PK\x03\x04") || first.starts_with("PK\x05\x06"); }
bool is_stored(std::string_view first) {
  return first.size() > 8 && first[8] == '{' && first.substr(5, 3) == std::string_view("\0\0\0", 3);
}

constexpr std::array kFormats = {CaptureFormat{"npy", ".npy", is_npy, list_npy, read_npy},
                                 CaptureFormat{"npz", ".npz", is_zip, list_npz, read_npz},
                                 CaptureFormat{"safetensors", ".safetensors", is_stored, list_stored, read_stored}};

}  // namespace

std::uint64_t CapturedTensor::elements() const {
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::uint64_t>(size);
  return count;
}

std::span<const CaptureFormat> capture_formats() { return kFormats; }

std::string wrong_in_name(std::string_view name) {
  const auto wrong = [name](const char* what) { return "the tensor name " + quote(name) + " " + what; };
  if (name.empty()) return wrong("is empty");
  if (name.size() > 1024) return wrong("is longer than 1024 bytes");
  if (std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }))
    return wrong("holds control characters");
  if (name.front() == '/' || name.find('\\') != std::string_view::npos) return wrong("is a path out of its folder");
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    if (name.substr(at, end - at) == "..") return wrong("is a path out of its folder");
    at = end + 1;
  }
  return "";
}

}  // namespace fusediff
