#include "campaign/worker_state.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "model/case_json.h"

namespace fusediff {
namespace {

constexpr std::uint64_t kMagic = 0x31656b726f776466;  // "fdworke1"
constexpr std::size_t kSlots = 2048;
constexpr std::size_t kKeyBytes = 152;

}  // namespace

struct WorkerState::Layout {
  struct Slot {
    char key[kKeyBytes];
    std::atomic<std::uint64_t> count;
  };
  std::uint64_t magic;
  std::atomic<std::uint64_t> checks;
  std::atomic<std::uint64_t> target_nanoseconds;
  std::atomic<std::uint64_t> allowed;
  std::atomic<std::uint64_t> begun;
  std::atomic<std::uint32_t> stop;
  std::atomic<std::uint32_t> leaving;
  std::atomic<std::uint32_t> running;  // the case below is in the target
  std::atomic<std::uint32_t> used_slots;
  std::uint64_t case_bytes;
  char message[1024];
  char case_text[kMaxCaseBytes];
  Slot slots[kSlots];
};

void Counts::add(const Counts& other) {
  checks += other.checks;
  target_nanoseconds += other.target_nanoseconds;
  for (const auto& [key, count] : other.by_key) by_key[key] += count;
}

std::map<std::string, std::uint64_t> Counts::of_kind(std::string_view kind) const {
  const std::string prefix = std::string(kind) + "/";
  std::map<std::string, std::uint64_t> found;
  for (auto at = by_key.lower_bound(prefix); at != by_key.end() && at->first.starts_with(prefix); ++at) {
    found[at->first.substr(prefix.size())] = at->second;
  }
  return found;
}

Result<WorkerState> WorkerState::map(const std::filesystem::path& path, int flags, bool fresh) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");
  const auto failed = [&](const char* verb, int code) {
    return user_error(path.string() + ": cannot " + verb + ": " + std::strerror(code));
  };
  int descriptor = -1;
  if (!path.empty()) {
    descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0644);
    if (descriptor < 0) return failed("open", errno);
    const int reserved = fresh ? ::posix_fallocate(descriptor, 0, sizeof(Layout)) : 0;
    struct stat info {};
    ::fstat(descriptor, &info);
    if (reserved != 0 || info.st_size != static_cast<off_t>(sizeof(Layout))) {
      ::close(descriptor);
      return reserved != 0 ? failed("reserve space for it", reserved) : failed("use", EINVAL);
    }
  }
  void* memory = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE,
                        path.empty() ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, descriptor, 0);
  const int code = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (memory == MAP_FAILED) return failed("map", code);
  auto* layout = static_cast<Layout*>(memory);
  if (fresh) layout->magic = kMagic;
  if (layout->magic != kMagic) {
    ::munmap(memory, sizeof(Layout));
    return failed("use", EINVAL);
  }
  return WorkerState(layout, fresh);
}

Result<WorkerState> WorkerState::create(const std::filesystem::path& path) {
  return map(path, O_CREAT | O_TRUNC, true);
}
Result<WorkerState> WorkerState::open(const std::filesystem::path& path) { return map(path, 0, false); }

WorkerState::WorkerState(Layout* layout, bool fresh) : layout_(layout) {
  if (!fresh) read_keys();
}
WorkerState::WorkerState(WorkerState&& other) noexcept
    : layout_(std::exchange(other.layout_, nullptr)), slots_(std::move(other.slots_)) {}
WorkerState& WorkerState::operator=(WorkerState&& other) noexcept {
  std::swap(layout_, other.layout_);
  std::swap(slots_, other.slots_);
  return *this;
}
WorkerState::~WorkerState() {
  if (layout_ != nullptr) ::munmap(layout_, sizeof(Layout));
}

// Keys that another process added since.
void WorkerState::read_keys() {
  const std::uint32_t used = layout_->used_slots.load(std::memory_order_acquire);
  for (std::size_t i = slots_.size(); i < used && i < kSlots; ++i) slots_[layout_->slots[i].key] = i;
}

void WorkerState::begin(std::string_view case_text) {
  const std::size_t bytes = std::min(case_text.size(), kMaxCaseBytes);
  std::memcpy(layout_->case_text, case_text.data(), bytes);
  layout_->case_bytes = bytes;
  layout_->begun.store(cases_begun() + 1, std::memory_order_relaxed);
  layout_->running.store(1, std::memory_order_release);
}
void WorkerState::end() { layout_->running.store(0, std::memory_order_release); }

void WorkerState::count(std::string_view key, std::uint64_t amount) {
  std::string text(key.substr(0, kKeyBytes - 1));
  auto at = slots_.find(text);
  if (at == slots_.end()) {
    read_keys();
    at = slots_.find(text);
  }
  if (at == slots_.end()) {
    const std::uint32_t used = layout_->used_slots.load(std::memory_order_relaxed);
    // The last few are kept for the kinds' "other".
    if (used + 16 >= kSlots && !text.ends_with("/other"))
      return count(text.substr(0, text.find('/')) + "/other", amount);
    if (used >= kSlots) return;
    Layout::Slot& slot = layout_->slots[used];
    std::memcpy(slot.key, text.c_str(), text.size() + 1);
    slot.count.store(0, std::memory_order_relaxed);
    layout_->used_slots.store(used + 1, std::memory_order_release);
    at = slots_.emplace(std::move(text), used).first;
  }
  std::atomic<std::uint64_t>& value = layout_->slots[at->second].count;
  value.store(value.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

void WorkerState::count_check(std::uint64_t target_nanoseconds) {
  layout_->checks.fetch_add(1, std::memory_order_relaxed);
  layout_->target_nanoseconds.fetch_add(target_nanoseconds, std::memory_order_relaxed);
}

void WorkerState::count_death(std::string_view op) {
  count_check(0);
  count("check/" + std::string(op) + "/died");
}

void WorkerState::leave(Leaving why, std::string_view message) {
  const std::size_t bytes = std::min(message.size(), sizeof(layout_->message) - 1);
  std::memcpy(layout_->message, message.data(), bytes);
  layout_->message[bytes] = '\0';
  layout_->leaving.store(static_cast<std::uint32_t>(why), std::memory_order_release);
}

bool WorkerState::stop_wanted() const {
  const std::uint64_t allowed = layout_->allowed.load(std::memory_order_relaxed);
  return layout_->stop.load(std::memory_order_relaxed) != 0 || (allowed != 0 && checks() >= allowed);
}
std::uint64_t WorkerState::checks() const { return layout_->checks.load(std::memory_order_relaxed); }

void WorkerState::allow(std::uint64_t checks) { layout_->allowed.store(checks, std::memory_order_relaxed); }
void WorkerState::ask_to_stop() { layout_->stop.store(1, std::memory_order_relaxed); }
void WorkerState::forget_leaving() {
  layout_->running.store(0, std::memory_order_relaxed);
  layout_->leaving.store(static_cast<std::uint32_t>(Leaving::kNotSaid), std::memory_order_relaxed);
}
Leaving WorkerState::leaving() const { return static_cast<Leaving>(layout_->leaving.load(std::memory_order_acquire)); }
std::string WorkerState::message() const {
  return std::string(layout_->message, ::strnlen(layout_->message, sizeof(layout_->message)));
}
std::uint64_t WorkerState::cases_begun() const { return layout_->begun.load(std::memory_order_relaxed); }
bool WorkerState::is_running() const { return layout_->running.load(std::memory_order_acquire) != 0; }
std::optional<std::string> WorkerState::case_under_way() const {
  if (!is_running()) return std::nullopt;
  return std::string(layout_->case_text, std::min<std::size_t>(layout_->case_bytes, kMaxCaseBytes));
}

Counts WorkerState::counts() const {
  Counts counts;
  counts.checks = checks();
  counts.target_nanoseconds = layout_->target_nanoseconds.load(std::memory_order_relaxed);
  const std::uint32_t used = layout_->used_slots.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used && i < kSlots; ++i) {
    const Layout::Slot& slot = layout_->slots[i];
    counts.by_key[std::string(slot.key, ::strnlen(slot.key, kKeyBytes))] = slot.count.load(std::memory_order_relaxed);
  }
  return counts;
}

}  // namespace fusediff
