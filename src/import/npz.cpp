#include "import/npz.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "import/npy.h"
#include "model/quote.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMember = ".npy";

// The members of a zip archive, one after the other.
class Zip {
 public:
  explicit Zip(const fs::path& file) : archive_(::archive_read_new()) {
    ::archive_read_support_format_zip_seekable(archive_.get());
    opened_ = ::archive_read_open_filename(archive_.get(), file.c_str(), std::size_t{1} << 17) == ARCHIVE_OK;
  }

  std::string trouble() const {
    const char* text = ::archive_error_string(archive_.get());
    const std::string_view all = text == nullptr ? "damaged" : text;
    return std::string(all.substr(0, all.find('\n')));
  }

  // False: there is none, or an error.
  Result<bool> next() {
    if (!opened_) return user_error("no whole zip archive: " + trouble());
    const int code = ::archive_read_next_header(archive_.get(), &entry_);
    if (code == ARCHIVE_EOF) return false;
    if (code < ARCHIVE_WARN) return user_error("no whole zip archive: " + trouble());
    read_ = 0;
    return true;
  }

  std::string name() const {
    const char* text = ::archive_entry_pathname_utf8(entry_);
    if (text == nullptr) text = ::archive_entry_pathname(entry_);
    return text == nullptr ? "" : text;
  }
  bool is_file() const { return ::archive_entry_filetype(entry_) == AE_IFREG; }
  bool is_locked() const { return ::archive_entry_is_data_encrypted(entry_) != 0; }
  // The member's unpacked size, where it is stated.
  std::optional<std::uint64_t> size() const {
    if (::archive_entry_size_is_set(entry_) == 0) return std::nullopt;
    return static_cast<std::uint64_t>(::archive_entry_size(entry_));
  }
  std::uint64_t read_so_far() const { return read_; }

  // At most so many; 0 at the member's end.
  Result<std::size_t> read(char* into, std::size_t bytes) {
    const la_ssize_t count = ::archive_read_data(archive_.get(), into, bytes);
    if (count < 0) return user_error("cannot be unpacked: " + trouble());
    read_ += static_cast<std::uint64_t>(count);
    return static_cast<std::size_t>(count);
  }
  Status read_all(char* into, std::size_t bytes) {
    while (bytes > 0) {
      const Result<std::size_t> count = read(into, bytes);
      if (!count.ok()) return count.error();
      if (*count == 0) return user_error("ends too early");
      into += *count;
      bytes -= *count;
    }
    return {};
  }

 private:
  struct Free {
    void operator()(struct archive* archive) const { ::archive_read_free(archive); }
  };
  std::unique_ptr<struct archive, Free> archive_;
  struct archive_entry* entry_ = nullptr;
  bool opened_ = false;
  std::uint64_t read_ = 0;
};

Error in_file(const fs::path& file, const std::string& what) { return user_error(quote(file.string()) + ": " + what); }
Error in_member(const fs::path& file, const std::string& name, const std::string& what) {
  return in_file(file, quote(name) + ": " + what);
}

// The header of the member at hand, checked against the size that the archive states.
Result<CapturedTensor> read_header(Zip& zip) {
  Result<CapturedTensor> tensor =
      read_npy_header([&zip](char* into, std::size_t bytes) { return zip.read_all(into, bytes); });
  if (!tensor.ok() || !tensor->problem.empty()) return tensor;
  const auto size = zip.size();
  if (size && *size - zip.read_so_far() != tensor->bytes()) {
    return user_error("holds " + std::to_string(*size - zip.read_so_far()) + " bytes of elements, its header says " +
                      std::to_string(tensor->bytes()));
  }
  return tensor;
}

Result<CapturedTensor> list_member(Zip& zip, const std::string& name) {
  CapturedTensor odd;
  odd.problem = zip.is_locked()            ? "is encrypted"
                : !zip.is_file()           ? "is no file"
                : !name.ends_with(kMember) ? "is no .npy member"
                                           : "";
  if (!odd.problem.empty()) {
    odd.name = name;
    return odd;
  }
  Result<CapturedTensor> tensor = read_header(zip);
  if (!tensor.ok()) return tensor;
  tensor->name = name.substr(0, name.size() - kMember.size());
  if (tensor->problem.empty() && tensor->shape.empty()) {
    tensor->value.resize(tensor->type.size);
    if (Status got = zip.read_all(reinterpret_cast<char*>(tensor->value.data()), tensor->value.size()); !got.ok())
      return got.error();
  }
  return tensor;
}

// Beyond the last element the archive's own checksum is compared.
Status copy_member(Zip& zip, std::uint64_t bytes, std::vector<std::byte>& piece, const PieceSink& sink) {
  for (;;) {
    const Result<std::size_t> count = zip.read(reinterpret_cast<char*>(piece.data()), piece.size());
    if (!count.ok()) return count.error();
    if (*count == 0) break;
    if (*count > bytes) return user_error("holds more bytes than its header says");
    bytes -= *count;
    if (Status took = sink(std::span(piece).first(*count)); !took.ok()) return took;
  }
  return bytes == 0 ? Status() : Status(user_error("ends too early"));
}

}  // namespace

Result<std::vector<CapturedTensor>> list_npz(const fs::path& file) {
  Zip zip(file);
  std::vector<CapturedTensor> tensors;
  std::set<std::string> names;
  for (;;) {
    const Result<bool> more = zip.next();
    if (!more.ok()) return in_file(file, more.error().what);
    if (!*more) return tensors;
    const std::string name = zip.name();
    if (const std::string wrong = wrong_in_name(name); !wrong.empty()) return in_file(file, wrong);
    if (!names.insert(name).second) return in_file(file, quote(name) + " stands twice");
    if (names.size() > kMostTensors) return in_file(file, "more than " + std::to_string(kMostTensors) + " members");
    Result<CapturedTensor> tensor = list_member(zip, name);
    if (!tensor.ok()) return in_member(file, name, tensor.error().what);
    tensors.push_back(*std::move(tensor));
  }
}

Status read_npz(const fs::path& file, std::span<const CapturedTensor> tensors, const SinkOf& sink_of) {
  Zip zip(file);
  std::vector<std::byte> piece(kPieceBytes);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Result<bool> more = zip.next();
    if (!more.ok()) return in_file(file, more.error().what);
    if (!*more) return in_file(file, "has changed meanwhile");
    const PieceSink sink = sink_of(i);
    if (!sink) continue;
    const Result<CapturedTensor> header = read_header(zip);
    if (!header.ok()) return in_member(file, tensors[i].name, header.error().what);
    if (header->shape != tensors[i].shape || zip.name() != tensors[i].name + std::string(kMember)) {
      return in_file(file, "has changed meanwhile");
    }
    if (Status copied = copy_member(zip, header->bytes(), piece, sink); !copied.ok()) {
      return in_member(file, tensors[i].name, copied.error().what);
    }
  }
  return {};
}

}  // namespace fusediff
