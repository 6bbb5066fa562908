#include "base/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "base/descriptor.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = 1 << 16;
constexpr std::uint64_t kMaxPadding = 1 << 20;  // behind the archive's end: writers fill up a record
constexpr std::size_t kMaxDepth = 8;
constexpr std::size_t kShownOfName = 80;

struct Closer {
  void operator()(archive* a) const { archive_free(a); }
  void operator()(archive_entry* e) const { archive_entry_free(e); }
  void operator()(gzFile_s* file) const { ::gzclose(file); }
};
using ArchivePointer = std::unique_ptr<archive, Closer>;
using EntryPointer = std::unique_ptr<archive_entry, Closer>;

Error at(const fs::path& path, const std::string& what) { return user_error(path.string() + ": " + what); }

// A stranger's text on one line.
std::string shown(std::string_view name) {
  std::string text = "\"";
  for (const char c : name.substr(0, kShownOfName)) text += c >= ' ' && c <= '~' && c != '"' && c != '\\' ? c : '?';
  return text + (name.size() > kShownOfName ? "...\"" : "\"");
}

// The parts of a name, "." left out; or why it is refused.
Result<std::vector<std::string>> parts_of(std::string_view name, const ArchiveLimits& limits) {
  if (name.empty()) return user_error("has no name");
  if (name.size() > limits.name_bytes) {
    return user_error("has a name of " + std::to_string(name.size()) + " bytes; at most " +
                      std::to_string(limits.name_bytes) + " are right");
  }
  if (name.front() == '/') return user_error("has an absolute name");
  std::vector<std::string> parts;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find('/'), name.size());
    const std::string part(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
    if (part == "..") return user_error("leads out of the archive");
    if (std::any_of(part.begin(), part.end(), [](char c) { return c < ' ' || c > '~' || c == '\\'; })) {
      return user_error("has a name with other characters than printable ASCII, or with a backslash");
    }
    if (!part.empty() && part != ".") parts.push_back(part);
  }
  if (parts.size() > kMaxDepth) return user_error("lies too deep in folders");
  return parts;
}

// gzip's bytes, inflated and checked.
class Inflated {
 public:
  explicit Inflated(const fs::path& path) : file_(::gzopen(path.c_str(), "rbe")) {
    if (file_) ::gzbuffer(file_.get(), kBlock);
  }
  bool is_open() const { return file_ != nullptr; }
  bool is_gzip() { return ::gzdirect(file_.get()) == 0; }
  // Bytes read, 0 at the end, -1 where the file is cut off, damaged or cannot be read.
  ssize_t read(void* into, std::size_t bytes) {
    const int got = ::gzread(file_.get(), into, static_cast<unsigned>(bytes));
    int code = Z_OK;
    (void)::gzerror(file_.get(), &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) return -1;
    out_ += static_cast<std::uint64_t>(got);
    return got;
  }
  ssize_t next(const void** block) {
    *block = block_.data();
    return read(block_.data(), block_.size());
  }
  std::uint64_t unpacked() const { return out_; }
  std::uint64_t packed() { return static_cast<std::uint64_t>(std::max<z_off_t>(1, ::gzoffset(file_.get()))); }

 private:
  std::unique_ptr<gzFile_s, Closer> file_;
  std::vector<char> block_ = std::vector<char>(kBlock);
  std::uint64_t out_ = 0;
};

la_ssize_t read_block(archive* a, void* source, const void** block) {
  const ssize_t got = static_cast<Inflated*>(source)->next(block);
  if (got < 0) archive_set_error(a, EINVAL, "the compressed bytes are cut off or damaged");
  return got;
}

class Extraction {
 public:
  Extraction(const fs::path& archive, const ArchiveLimits& limits, int folder)
      : path_(archive), limits_(limits), folder_(folder), source_(archive), archive_(archive_read_new()) {}

  Status run() {
    if (!source_.is_open()) return at(path_, std::string("cannot open: ") + std::strerror(errno));
    if (!source_.is_gzip()) return at(path_, "is not gzip; the .tar.gz of a bundle is right");
    archive_read_support_format_tar(archive_.get());
    if (archive_read_open(archive_.get(), &source_, nullptr, read_block, nullptr) != ARCHIVE_OK) return damaged();
    for (;;) {
      archive_entry* entry = nullptr;
      const int code = archive_read_next_header(archive_.get(), &entry);
      if (code == ARCHIVE_EOF) break;
      if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return damaged();
      if (++entries_ > limits_.entries) {
        return at(path_, "has more than " + std::to_string(limits_.entries) + " entries; that is no bundle");
      }
      if (Status taken = take(entry); !taken.ok()) return taken;
    }
    if (entries_ == 0) return at(path_, "is an archive without entries");
    return read_to_the_end();
  }

 private:
  Error damaged() const {
    const char* why = archive_error_string(archive_.get());
    return at(path_, std::string("is no whole tar archive: ") + (why == nullptr ? "it is damaged" : shown(why)));
  }

  Status take(archive_entry* entry) {
    const char* name = archive_entry_pathname(entry);
    if (name == nullptr) return at(path_, "an entry has a name that is not ASCII");
    const auto refuse = [&](const std::string& why) { return at(path_, "entry " + shown(name) + " " + why); };
    const Result<std::vector<std::string>> parts = parts_of(name, limits_);
    if (!parts.ok()) return refuse(parts.error().what);
    const auto type = archive_entry_filetype(entry);
    if (archive_entry_hardlink(entry) != nullptr || (type != AE_IFREG && type != AE_IFDIR)) {
      return refuse("is a link, a device or something else than a file; a bundle has regular files only");
    }
    if (type == AE_IFDIR) return make_folders(*parts, parts->size(), name);
    if (parts->empty()) return refuse("is a file without a name");
    if (archive_entry_sparse_count(entry) > 0) return refuse("is a sparse file");
    const la_int64_t size = archive_entry_size(entry);
    if (size < 0 || static_cast<std::uint64_t>(size) > limits_.total_bytes - bytes_) {
      return refuse("brings the archive above " + std::to_string(limits_.total_bytes) + " bytes, the limit here");
    }
    bytes_ += static_cast<std::uint64_t>(size);
    if (Status made = make_folders(*parts, parts->size() - 1, name); !made.ok()) return made;
    return write_entry(*parts, static_cast<std::uint64_t>(size), name);
  }

  static std::string joined(const std::vector<std::string>& parts, std::size_t count) {
    std::string path;
    for (std::size_t i = 0; i < count; ++i) path += (i == 0 ? "" : "/") + parts[i];
    return path;
  }

  Status make_folders(const std::vector<std::string>& parts, std::size_t count, const char* name) {
    for (std::size_t i = 1; i <= count; ++i) {
      const std::string folder = joined(parts, i);
      if (files_.contains(folder)) return at(path_, "entry " + shown(name) + " lies in a file");
      if (folders_.contains(folder)) continue;
      if (::mkdirat(folder_, folder.c_str(), 0700) != 0) return cannot_write(name);
      folders_.insert(folder);
    }
    return {};
  }

  Error cannot_write(const char* name) const {
    return at(path_, "cannot unpack " + shown(name) + ": " + std::strerror(errno));
  }

  Status write_entry(const std::vector<std::string>& parts, std::uint64_t size, const char* name) {
    const std::string place = joined(parts, parts.size());
    if (folders_.contains(place) || !files_.insert(place).second) {
      return at(path_, "entry " + shown(name) + " is there twice");
    }
    const Descriptor file(::openat(folder_, place.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.is_open()) return cannot_write(name);
    std::uint64_t written = 0;
    for (;;) {
      const void* block = nullptr;
      std::size_t bytes = 0;
      la_int64_t offset = 0;
      const int code = archive_read_data_block(archive_.get(), &block, &bytes, &offset);
      if (code == ARCHIVE_EOF) break;
      if (code != ARCHIVE_OK) return damaged();
      if (static_cast<std::uint64_t>(offset) != written || bytes > size - written) {
        return at(path_, "entry " + shown(name) + " is not as long as it says");
      }
      if (Status sane = check_ratio(); !sane.ok()) return sane;
      if (!write_all(file.number(), block, bytes)) return cannot_write(name);
      written += bytes;
    }
    if (written != size) return at(path_, "entry " + shown(name) + " is not as long as it says");
    return {};
  }

  Status check_ratio() {
    if (source_.unpacked() < limits_.ratio_from || source_.unpacked() / limits_.ratio <= source_.packed()) return {};
    return at(path_, "unpacks to more than " + std::to_string(limits_.ratio) + " times its size, the limit here");
  }

  static bool write_all(int file, const void* block, std::size_t bytes) {
    const char* from = static_cast<const char*>(block);
    while (bytes > 0) {
      const ssize_t n = ::write(file, from, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return false;
      from += n;
      bytes -= static_cast<std::size_t>(n);
    }
    return true;
  }

  // gzip's checksum stands at its end.
  Status read_to_the_end() {
    std::vector<char> block(kBlock);
    std::uint64_t behind = 0;
    for (;;) {
      const ssize_t got = source_.read(block.data(), block.size());
      if (got == 0) return {};
      if (got < 0) return at(path_, "is no whole archive: the compressed bytes are cut off or damaged");
      behind += static_cast<std::uint64_t>(got);
      if (behind > kMaxPadding) return at(path_, "goes on behind the end of the archive");
    }
  }

  const fs::path& path_;
  const ArchiveLimits& limits_;
  int folder_;
  Inflated source_;
  ArchivePointer archive_;
  std::set<std::string> files_, folders_;
  std::size_t entries_ = 0;
  std::uint64_t bytes_ = 0;
};

Status add_file(archive* out, const PackedFile& packed, std::uint64_t& left, const ArchiveLimits& limits) {
  const Descriptor file(::open(packed.file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!file.is_open() || ::fstat(file.number(), &info) != 0) {
    return at(packed.file, std::string("cannot open: ") + std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) return at(packed.file, "is no regular file");
  if (static_cast<std::uint64_t>(info.st_size) > left) {
    return at(packed.file, "brings the archive above " + std::to_string(limits.total_bytes) + " bytes, the limit here");
  }
  left -= static_cast<std::uint64_t>(info.st_size);
  const EntryPointer entry(archive_entry_new());
  archive_entry_set_pathname(entry.get(), packed.name.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0644);
  archive_entry_set_size(entry.get(), info.st_size);
  archive_entry_set_mtime(entry.get(), 0, 0);
  const auto failed = [&] { return at(packed.file, std::string("cannot pack: ") + archive_error_string(out)); };
  if (archive_write_header(out, entry.get()) != ARCHIVE_OK) return failed();
  std::vector<char> block(kBlock);
  for (off_t done = 0; done < info.st_size;) {
    const ssize_t got = ::read(file.number(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || done + got > info.st_size) return at(packed.file, "changed while it was read");
    if (archive_write_data(out, block.data(), static_cast<std::size_t>(got)) != got) return failed();
    done += got;
  }
  return {};
}

Status fill(const fs::path& path, int descriptor, const std::vector<PackedFile>& files, const ArchiveLimits& limits) {
  const ArchivePointer out(archive_write_new());
  const auto failed = [&] { return at(path, std::string("cannot write: ") + archive_error_string(out.get())); };
  if (archive_write_set_format_ustar(out.get()) != ARCHIVE_OK ||
      archive_write_add_filter_gzip(out.get()) != ARCHIVE_OK ||
      archive_write_set_filter_option(out.get(), "gzip", "timestamp", nullptr) != ARCHIVE_OK ||
      archive_write_open_fd(out.get(), descriptor) != ARCHIVE_OK)
    return failed();
  std::uint64_t left = limits.total_bytes;
  for (const PackedFile& file : files) {
    if (Status added = add_file(out.get(), file, left, limits); !added.ok()) return added;
  }
  if (archive_write_close(out.get()) != ARCHIVE_OK) return failed();
  const auto packed = static_cast<std::uint64_t>(std::max<la_int64_t>(1, archive_filter_bytes(out.get(), -1)));
  const auto unpacked = static_cast<std::uint64_t>(archive_filter_bytes(out.get(), 0));
  if (unpacked >= limits.ratio_from && unpacked / limits.ratio > packed) {
    return at(path, "would unpack to more than " + std::to_string(limits.ratio) +
                        " times its size, which nobody unpacks; send the folder another way");
  }
  return {};
}

}  // namespace

Status write_archive(const fs::path& archive, std::span<const PackedFile> files, const ArchiveLimits& limits) {
  std::vector<PackedFile> sorted(files.begin(), files.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  if (sorted.empty() || sorted.size() > limits.entries) {
    return at(archive, std::to_string(sorted.size()) + " files; 1 to " + std::to_string(limits.entries) + " are right");
  }
  for (const PackedFile& file : sorted) {
    const Result<std::vector<std::string>> parts = parts_of(file.name, limits);
    if (!parts.ok()) return at(file.file, parts.error().what);
  }
  const fs::path temporary = archive.string() + ".tmp" + std::to_string(::getpid());
  const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.is_open()) return at(archive, std::string("cannot create: ") + std::strerror(errno));
  Status done = fill(archive, file.number(), sorted, limits);
  if (done.ok() && ::fsync(file.number()) != 0 && errno != EINVAL) {
    done = at(archive, std::string("cannot write: ") + std::strerror(errno));
  }
  if (done.ok() && ::rename(temporary.c_str(), archive.c_str()) != 0) {
    done = at(archive, std::string("cannot write: ") + std::strerror(errno));
  }
  if (!done.ok()) ::unlink(temporary.c_str());
  return done;
}

Status extract_archive(const fs::path& archive, const fs::path& folder, const ArchiveLimits& limits) {
  const Descriptor root(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root.is_open()) return at(folder, std::string("cannot open: ") + std::strerror(errno));
  struct stat info {};
  if (::stat(archive.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return at(archive, "is no regular file");
  return Extraction(archive, limits, root.number()).run();
}

}  // namespace fusediff
