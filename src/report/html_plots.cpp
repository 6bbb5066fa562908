#include "report/html_plots.h"

#include <algorithm>
#include <system_error>

namespace fusediff {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::uint64_t kNanDistance = UINT64_MAX;

struct Buckets {
  std::int64_t size = 1;  // elements in one
  Json at = Json::array();
  Json ulp = Json::array();    // the largest distance in each; -1 NaN against a number, -2 other bits of equal value
  std::int64_t differing = 0;  // in bits
  std::uint64_t most = 0;
};

Buckets buckets_of(const StoredTensor& a, const StoredTensor& b, std::size_t points) {
  const std::size_t width = size_of(a.dtype);
  const std::size_t count = a.bytes.size() / width;
  Buckets made;
  const std::size_t size = std::max<std::size_t>(1, (count + points - 1) / points);
  made.size = static_cast<std::int64_t>(size);
  for (std::size_t begin = 0; begin < count; begin += size) {
    std::uint64_t most = 0;
    std::size_t where = begin;
    bool differs = false;
    for (std::size_t i = begin; i < std::min(begin + size, count); ++i) {
      const std::uint64_t x = load_bits(a.dtype, a.bytes.data() + i * width);
      const std::uint64_t y = load_bits(b.dtype, b.bytes.data() + i * width);
      if (x == y) continue;
      ++made.differing;
      const std::uint64_t distance = ulp_distance(a.dtype, x, y);
      if (distance > most || !differs) most = std::max(most, distance), where = i;
      differs = true;
    }
    made.most = std::max(made.most, most);
    made.at.push_back(where);
    made.ulp.push_back(most == kNanDistance ? Json(-1) : differs && most == 0 ? Json(-2) : Json(most));
  }
  return made;
}

std::vector<std::string> outputs_to_plot(const Finding& f) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const Difference& d : f.differences) add(d.output);
  if (names.empty() && f.byte_ranges.empty()) add(f.output);
  return names;
}

}  // namespace

Tensors::Tensors(const fs::path& bundle) : bundle_(bundle) {
  std::error_code code;
  has_outputs_ = fs::is_regular_file(bundle / "outputs.safetensors", code);
  if (!has_outputs_) {
    unread_ =
        "this bundle holds no outputs.safetensors: it was written by an earlier release, or its runs could not be "
        "recorded; minimise again to have it";
  }
}

std::optional<StoredTensor> Tensors::read(const fs::path& file, const std::string& name) const {
  std::error_code code;
  if (!fs::is_regular_file(file, code)) return std::nullopt;
  Result<StoredTensor> tensor = read_safetensor(file, name);
  if (tensor.ok()) return *std::move(tensor);
  return std::nullopt;
}

std::optional<StoredTensor> Tensors::output(const std::string& name) const {
  return has_outputs_ ? read(bundle_ / "outputs.safetensors", name) : std::nullopt;
}

std::optional<StoredTensor> Tensors::input(const std::string& name) const {
  return read(bundle_ / "inputs.safetensors", name);
}

Json ulp_plots(const Finding& finding, const Tensors& tensors, std::size_t plots, std::size_t points) {
  Json json = Json::array();
  for (const std::string& name : outputs_to_plot(finding)) {
    if (json.size() >= plots) break;
    const auto a = tensors.output("target/" + name), b = tensors.output("against/" + name);
    if (!a || !b || a->dtype != b->dtype || a->bytes.size() != b->bytes.size() || a->bytes.empty()) continue;
    Buckets buckets = buckets_of(*a, *b, points);
    Json plot = {{"output", name},
                 {"dtype", name_of(a->dtype)},
                 {"shape", a->shape},
                 {"elements", a->bytes.size() / size_of(a->dtype)},
                 {"differing", buckets.differing},
                 {"max_ulp", buckets.most == kNanDistance ? Json(-1) : Json(buckets.most)},
                 {"bucket", buckets.size},
                 {"at", std::move(buckets.at)},
                 {"ulp", std::move(buckets.ulp)}};
    for (const Difference& d : finding.differences) {
      if (d.output == name && d.differing != buckets.differing) plot["told"] = d.differing;
    }
    json.push_back(std::move(plot));
  }
  return json;
}

}  // namespace fusediff
