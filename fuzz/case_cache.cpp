#include "case_cache.h"

#include "model/case_json.h"

namespace fusediff {
namespace {

constexpr std::size_t kMaxEntries = 4096;
constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

}  // namespace

CaseCache::Entry& CaseCache::slot(const Hash128& hash, std::size_t bytes) {
  if (entries_.size() >= kMaxEntries || bytes_ + bytes > kMaxBytes) {
    entries_.clear();
    bytes_ = 0;
  }
  bytes_ += bytes;
  Entry& entry = entries_[hash];
  entry.hash = hash;
  return entry;
}

const CaseCache::Entry& CaseCache::find(std::string_view bytes) {
  const Hash128 hash = hash128(bytes);
  if (const auto at = entries_.find(hash); at != entries_.end()) return at->second;
  Entry& entry = slot(hash, bytes.size());
  Result<Case> parsed = parse_case(bytes, folder_);
  if (parsed.ok()) {
    share_bits(*parsed);
    entry.c = *std::move(parsed);
  } else {
    entry.why = parsed.error().what;
  }
  return entry;
}

void CaseCache::share_bits(Case& c) {
  const auto share = [this](Fill& fill) {
    if (fill.bits_file.empty()) return;
    const auto [at, added] = shared_.try_emplace(fill.bits_file, fill.bits);
    if (!added) fill.bits = at->second;
  };
  for (auto& [name, value] : c.inputs) {
    share(value.fill);
    for (Patch& patch : value.patches) share(patch.fill);
  }
  for (Case& call : c.experiment.calls) share_bits(call);
}

void CaseCache::put(std::string_view bytes, const Case& c) {
  const Hash128 hash = hash128(bytes);
  if (entries_.contains(hash)) return;
  slot(hash, bytes.size()).c = c;
}

}  // namespace fusediff
