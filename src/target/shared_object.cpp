#include "target/shared_object.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fusediff {
namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr std::uint16_t kMachine = EM_RISCV;
#else
#error "name the ELF machine of this architecture here"
#endif

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "aarch64";
    case EM_RISCV:
      return "risc-v";
    case EM_386:
      return "32-bit x86";
    case EM_ARM:
      return "32-bit arm";
    case EM_PPC64:
      return "ppc64";
    default:
      return "machine number " + std::to_string(machine);
  }
}

class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& file) : descriptor_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor() const { return descriptor_; }
  bool read(std::uint64_t offset, void* into, std::size_t bytes) const {
    auto* at = static_cast<char*>(into);
    while (bytes > 0) {
      const ssize_t got = ::pread(descriptor_, at, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got;
      offset += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::size_t>(got);
    }
    return true;
  }

 private:
  int descriptor_;
};

// Whether [offset, offset + count * size) lies in [0, limit), without overflow.
bool inside(std::uint64_t offset, std::uint64_t count, std::uint64_t size, std::uint64_t limit) {
  return offset <= limit && (size == 0 || count <= (limit - offset) / size);
}

// nullptr: fine. Otherwise what is wrong with the ELF header.
std::optional<std::string> wrong_header(const Elf64_Ehdr& header, std::uint64_t file_bytes) {
  constexpr unsigned char kOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return "is not a 64-bit library";
  if (header.e_ident[EI_DATA] != kOrder) return "has the other byte order";
  if (header.e_machine != kMachine) {
    return "is built for " + machine_name(header.e_machine) + ", this machine is " + machine_name(kMachine);
  }
  if (header.e_type != ET_DYN) return "is an ELF file but not a shared library";
  if (header.e_phnum == 0 || header.e_phentsize != sizeof(Elf64_Phdr) ||
      !inside(header.e_phoff, header.e_phnum, sizeof(Elf64_Phdr), file_bytes)) {
    return "is damaged or cut off: its program headers lie outside of the file";
  }
  if (header.e_shoff != 0 && (header.e_shnum != 0 && header.e_shentsize != sizeof(Elf64_Shdr))) {
    return "is damaged: its section headers have a wrong size";
  }
  if (header.e_shoff != 0 && !inside(header.e_shoff, header.e_shnum, sizeof(Elf64_Shdr), file_bytes)) {
    return "is damaged or cut off: its section headers lie outside of the file";
  }
  return std::nullopt;
}

// Whether the addresses [address, address + bytes) are backed by one loaded segment.
bool loaded(const std::vector<Elf64_Phdr>& segments, std::uint64_t address, std::uint64_t bytes) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    if (inside(address - segment.p_vaddr, bytes, 1, segment.p_memsz)) return true;
  }
  return false;
}

std::optional<std::string> wrong_segment(const std::vector<Elf64_Phdr>& segments, std::uint64_t file_bytes) {
  bool any_load = false;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_NULL) continue;
    if (!inside(segment.p_offset, segment.p_filesz, 1, file_bytes)) {
      return "is damaged or cut off: a segment lies outside of the file";
    }
    if (segment.p_type != PT_LOAD) continue;
    any_load = true;
    if (segment.p_filesz > segment.p_memsz) return "is damaged: a segment is larger in the file than in memory";
    if (segment.p_align > 1 && !std::has_single_bit(segment.p_align)) {
      return "is damaged: the alignment of a segment is no power of two";
    }
    if (segment.p_vaddr + segment.p_memsz < segment.p_vaddr || segment.p_memsz > (std::uint64_t{1} << 40)) {
      return "is damaged: a segment has an impossible size";
    }
  }
  if (!any_load) return "is damaged: it has no segment to load";
  return std::nullopt;
}

std::optional<std::string> wrong_section(const OpenFile& file, const Elf64_Ehdr& header, std::uint64_t file_bytes) {
  if (header.e_shoff == 0 || header.e_shnum == 0) return std::nullopt;
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (!file.read(header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr))) return "cannot be read";
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS) continue;
    if (!inside(section.sh_offset, section.sh_size, 1, file_bytes)) {
      return "is damaged or cut off: a section lies outside of the file";
    }
  }
  return std::nullopt;
}

// The loader follows these without looking, so every one must point into a segment.
std::optional<std::string> wrong_dynamic(const OpenFile& file, const std::vector<Elf64_Phdr>& segments) {
  const Elf64_Phdr* dynamic = nullptr;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_DYNAMIC) dynamic = &segment;
  }
  if (dynamic == nullptr) return "is not a shared library: it has no dynamic section";
  if (!loaded(segments, dynamic->p_vaddr, dynamic->p_memsz)) return "is damaged: its dynamic section is not loaded";
  std::vector<Elf64_Dyn> entries(dynamic->p_filesz / sizeof(Elf64_Dyn));
  if (!file.read(dynamic->p_offset, entries.data(), entries.size() * sizeof(Elf64_Dyn))) return "cannot be read";
  bool ended = false;
  bool has_strings = false;
  bool has_symbols = false;
  std::uint64_t string_bytes = 0;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_STRSZ) string_bytes = entry.d_un.d_val;
  }
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) {
      ended = true;
      break;
    }
    const std::uint64_t value = entry.d_un.d_val;
    std::uint64_t bytes = 0;
    switch (entry.d_tag) {
      case DT_STRTAB:
        has_strings = true;
        bytes = string_bytes;
        break;
      case DT_SYMTAB:
        has_symbols = true;
        bytes = sizeof(Elf64_Sym);
        break;
      case DT_RELA:
      case DT_REL:
      case DT_JMPREL:
      case DT_HASH:
      case DT_GNU_HASH:
      case DT_INIT:
      case DT_FINI:
      case DT_INIT_ARRAY:
      case DT_FINI_ARRAY:
      case DT_PLTGOT:
      case DT_VERSYM:
      case DT_VERNEED:
      case DT_VERDEF:
        bytes = 1;
        break;
      case DT_NEEDED:
      case DT_SONAME:
      case DT_RPATH:
      case DT_RUNPATH:
        if (value >= string_bytes) return "is damaged: a name of its dynamic section lies outside of its strings";
        continue;
      default:
        continue;
    }
    if (!loaded(segments, value, bytes)) return "is damaged: an entry of its dynamic section points nowhere";
  }
  if (!ended || !has_strings || !has_symbols) return "is damaged: its dynamic section is not whole";
  return std::nullopt;
}

std::optional<std::string> wrong(const OpenFile& file) {
  struct stat about {};
  if (::fstat(file.descriptor(), &about) != 0) return std::string("cannot be read: ") + std::strerror(errno);
  if (S_ISDIR(about.st_mode)) return "is a folder, not a shared library";
  if (!S_ISREG(about.st_mode)) return "is not a regular file";
  const auto file_bytes = static_cast<std::uint64_t>(about.st_size);
  if (file_bytes == 0) return "is empty, not a shared library";
  Elf64_Ehdr header{};
  const std::size_t head = file_bytes < sizeof(header) ? static_cast<std::size_t>(file_bytes) : sizeof(header);
  if (!file.read(0, &header, head)) return "cannot be read";
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "is not a shared library (no ELF header)";
  if (head < sizeof(header)) return "is cut off: it ends inside its ELF header";
  if (auto what = wrong_header(header, file_bytes)) return what;
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!file.read(header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr))) return "cannot be read";
  if (auto what = wrong_segment(segments, file_bytes)) return what;
  if (auto what = wrong_section(file, header, file_bytes)) return what;
  return wrong_dynamic(file, segments);
}

}  // namespace

Status check_shared_object(const std::filesystem::path& file) {
  const OpenFile open_file(file);
  if (open_file.descriptor() < 0) return user_error(file.string() + ": " + std::strerror(errno));
  if (auto what = wrong(open_file)) return user_error(file.string() + ": " + *what);
  return {};
}

}  // namespace fusediff
