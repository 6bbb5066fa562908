// The tie picture of a flip: see html_plots.h.
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "model/number_text.h"
#include "report/html_plots.h"

namespace fusediff {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShown = 16;  // candidates of a picture
constexpr std::size_t kMostStages = 12;

// What one side ranked and picked in the row of a flip.
struct RankedRow {
  std::vector<std::uint64_t> bits;   // [candidate]
  std::vector<std::int64_t> picked;  // [slot]
};

std::vector<std::uint64_t> row_of(const StoredTensor& tensor, std::int64_t row) {
  const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const std::size_t width = size_of(tensor.dtype);
  const std::size_t count = tensor.bytes.size() / width;
  if (columns <= 0 || row < 0) return {};
  const std::size_t wide = static_cast<std::size_t>(columns);
  if (static_cast<std::size_t>(row) >= count / wide) return {};
  std::vector<std::uint64_t> bits;
  for (std::size_t i = static_cast<std::size_t>(row) * wide; i < (static_cast<std::size_t>(row) + 1) * wide; ++i) {
    bits.push_back(load_bits(tensor.dtype, tensor.bytes.data() + i * width));
  }
  return bits;
}

std::optional<std::array<RankedRow, 2>> ranked_rows(const Flip& flip, const Tensors& tensors) {
  std::array<RankedRow, 2> rows;
  for (const Side side : kSides) {
    const std::string prefix = side == Side::kTarget ? "target/" : "against/";
    std::optional<StoredTensor> by = tensors.output(prefix + flip.by);
    if (!by) by = tensors.input(flip.by);
    if (!by || by->dtype != flip.by_dtype) return std::nullopt;
    RankedRow& row = rows[index_of(side)];
    row.bits = row_of(*by, flip.row);
    if (const auto pick = tensors.output(prefix + flip.pick); pick && !is_float(pick->dtype)) {
      for (const std::uint64_t b : row_of(*pick, flip.row)) row.picked.push_back(integer_value(pick->dtype, b));
    }
  }
  const auto count = static_cast<std::int64_t>(rows[0].bits.size());
  const auto inside = [&](std::int64_t pick) { return pick >= 0 && pick < count; };
  if (rows[1].bits.size() != rows[0].bits.size() || !inside(flip.picked[0]) || !inside(flip.picked[1]))
    return std::nullopt;
  return rows;
}

double value_of(DType dtype, std::uint64_t bits) {
  return is_float(dtype) ? float_value(dtype, bits) : static_cast<double>(integer_value(dtype, bits));
}

// Steps from one rank to another, upwards positive; null for NaN.
Json signed_ulp(DType dtype, std::uint64_t from, std::uint64_t to) {
  if (is_nan(dtype, from) || is_nan(dtype, to)) return nullptr;
  const auto distance = static_cast<double>(ulp_distance(dtype, from, to));
  return value_of(dtype, to) < value_of(dtype, from) ? -distance : distance;
}

// "largest" or "smallest", as the picks of the against side show it; "" where they show nothing.
std::string order_of(const RankedRow& row, DType dtype) {
  const std::set<std::int64_t> picks(row.picked.begin(), row.picked.end());
  double least_picked = INFINITY, most_picked = -INFINITY;
  for (const std::int64_t pick : picks) {
    if (pick < 0 || pick >= static_cast<std::int64_t>(row.bits.size())) continue;
    const double value = value_of(dtype, row.bits[static_cast<std::size_t>(pick)]);
    least_picked = std::min(least_picked, value);
    most_picked = std::max(most_picked, value);
  }
  std::size_t above = 0, below = 0;  // others that would have come first
  for (std::size_t i = 0; i < row.bits.size(); ++i) {
    if (picks.contains(static_cast<std::int64_t>(i))) continue;
    const double value = value_of(dtype, row.bits[i]);
    above += value > least_picked;
    below += value < most_picked;
  }
  return above == below ? "" : above < below ? "largest" : "smallest";
}

Json candidate_json(std::int64_t index, DType dtype, const std::array<std::uint64_t, 2>& bits, std::uint64_t zero,
                    const std::array<Json, 2>& slots) {
  Json json = {{"index", index}, {"value", Json::array()}, {"bits", Json::array()}, {"ulp", Json::array()}};
  for (const std::uint64_t b : bits) {
    json["value"].push_back(decimal(dtype, b));
    json["bits"].push_back(hex(dtype, b));
    json["ulp"].push_back(signed_ulp(dtype, zero, b));
  }
  json["slot"] = {slots[0], slots[1]};
  return json;
}

Json slot_of(const RankedRow& row, std::int64_t candidate) {
  if (row.picked.empty()) return nullptr;
  const auto at = std::find(row.picked.begin(), row.picked.end(), candidate);
  return at == row.picked.end() ? Json(-1) : Json(at - row.picked.begin());
}

void add_row(Json& picture, const Flip& flip, const std::array<RankedRow, 2>& rows) {
  const std::uint64_t zero = rows[1].bits[static_cast<std::size_t>(flip.picked[1])];
  // The two contested ones, then by distance on the nearer side.
  std::vector<std::tuple<bool, std::uint64_t, std::size_t>> nearest;
  for (std::size_t i = 0; i < rows[0].bits.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    nearest.emplace_back(index != flip.picked[0] && index != flip.picked[1],
                         std::min(ulp_distance(flip.by_dtype, zero, rows[0].bits[i]),
                                  ulp_distance(flip.by_dtype, zero, rows[1].bits[i])),
                         i);
  }
  std::sort(nearest.begin(), nearest.end());
  const std::size_t shown = std::min(kShown, nearest.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t at = std::get<2>(nearest[i]);
    const auto index = static_cast<std::int64_t>(at);
    picture["candidates"].push_back(candidate_json(index, flip.by_dtype, {rows[0].bits[at], rows[1].bits[at]}, zero,
                                                   {slot_of(rows[0], index), slot_of(rows[1], index)}));
  }
  picture["hidden"] = nearest.size() - shown;
  picture["order"] = order_of(rows[1], flip.by_dtype);
  picture["from"] = "outputs.safetensors";
}

void add_stored_ranks(Json& picture, const Flip& flip) {
  if (!flip.by_is_known) return;
  for (const std::size_t whose : {0u, 1u}) {
    const std::array<std::uint64_t, 2> bits = {flip.rank_bits[0][whose], flip.rank_bits[1][whose]};
    std::array<Json, 2> slots = {-1, -1};
    slots[whose] = flip.slot;
    picture["candidates"].push_back(
        candidate_json(flip.picked[whose], flip.by_dtype, bits, flip.rank_bits[1][1], slots));
  }
  picture["from"] = "finding.json, which keeps the two contested candidates alone";
}

}  // namespace

Json tie_pictures(const Finding& finding, const Tensors& tensors) {
  Json json = Json::array();
  for (const Flip& flip : finding.flips) {
    Json picture = {{"pick", flip.pick},
                    {"by", flip.by},
                    {"dtype", name_of(flip.by_dtype)},
                    {"row", flip.row},
                    {"slot", flip.slot},
                    {"rows", flip.rows},
                    {"picked", flip.picked},
                    {"known", flip.by_is_known},
                    {"gap", {ulp_words(flip.gap_ulp[0]), ulp_words(flip.gap_ulp[1])}},
                    {"order", ""},
                    {"from", ""},
                    {"hidden", 0},
                    {"candidates", Json::array()},
                    {"stages", Json::array()},
                    {"sums", Json::array()}};
    if (const auto rows = ranked_rows(flip, tensors)) {
      add_row(picture, flip, *rows);
    } else {
      add_stored_ranks(picture, flip);
    }
    for (const Flip::Stage& stage : flip.stages) {
      if (picture["stages"].size() >= kMostStages) break;
      Json values = Json::array();  // [side][whose pick]
      for (const auto& side : stage.bits)
        values.push_back({decimal(stage.dtype, side[0]), decimal(stage.dtype, side[1])});
      picture["stages"].push_back({{"output", stage.output}, {"dtype", name_of(stage.dtype)}, {"values", values}});
    }
    for (const Flip::Sum& sum : flip.sums) {
      picture["sums"].push_back({{"output", sum.output}, {"sum", {fixed10(sum.value[0]), fixed10(sum.value[1])}}});
    }
    json.push_back(std::move(picture));
    if (json.size() >= 4) break;
  }
  return json;
}

}  // namespace fusediff
