#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/descriptor.h"

namespace fusediff {
namespace {

Error at(const std::filesystem::path& path, const std::string& what) { return user_error(path.string() + ": " + what); }

Error failed(const std::filesystem::path& path, const char* verb) {
  return at(path, std::string("cannot ") + verb + ": " + std::strerror(errno));
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

Status write_in_place(const std::filesystem::path& path, std::string_view bytes) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) return failed(path, "open");
  return write_all(file.number(), bytes) ? Status() : Status(failed(path, "write"));
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  // A pipe that nobody writes to would block, and a device has no end.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) return failed(path, "open");
  struct stat info {};
  if (::fstat(file.number(), &info) != 0) return failed(path, "read");
  if (S_ISDIR(info.st_mode)) return at(path, "is a folder; a file is needed here");
  if (!S_ISREG(info.st_mode)) return at(path, "is a pipe, a socket or a device; a regular file is needed here");
  const auto too_large = [&] {
    return at(path, "larger than " + std::to_string(max_bytes) + " bytes, the limit here");
  };
  if (static_cast<std::uint64_t>(info.st_size) > max_bytes) return too_large();
  std::string bytes;
  char block[1 << 16];
  for (;;) {
    const ssize_t n = ::read(file.number(), block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(path, "read");
    if (n == 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(n));
    if (bytes.size() > max_bytes) return too_large();
  }
}

Status write_file(const std::filesystem::path& named, std::string_view bytes) {
  // Renaming over a link or a device would put a file in its place.
  std::error_code code;
  const std::filesystem::path path =
      std::filesystem::is_symlink(named, code) ? std::filesystem::weakly_canonical(named, code) : named;
  if (path.empty()) return at(named, "cannot write: " + code.message());
  const std::filesystem::file_status status = std::filesystem::status(path, code);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) return write_in_place(path, bytes);
  const std::filesystem::path temporary = path.string() + ".tmp" + std::to_string(::getpid());
  const auto fail = [&](const char* verb) {
    const Error error = failed(path, verb);
    ::unlink(temporary.c_str());
    return error;
  };
  {
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.number() < 0) return failed(path, "create");
    if (!write_all(file.number(), bytes)) return fail("write");
    if (::fsync(file.number()) != 0 && errno != EINVAL) return fail("write");
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail("write");
  return {};
}

Status append_line(const std::filesystem::path& path, std::string_view line) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (file.number() < 0) return failed(path, "open");
  if (!write_all(file.number(), std::string(line) + "\n")) return failed(path, "write");
  return {};
}

Status make_directories(const std::filesystem::path& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) return at(path, "cannot make the folder: " + code.message());
  return {};
}

}  // namespace fusediff
