#include "near_ties.h"

#include <string>
#include <utility>
#include <vector>

namespace fusediff {
namespace {

std::vector<std::uint64_t> bits_of(const Engine::Stage& stage) {
  const std::size_t size = size_of(stage.dtype);
  std::vector<std::uint64_t> bits(stage.bytes.size() / size);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = load_bits(stage.dtype, stage.bytes.data() + i * size);
  return bits;
}

std::optional<Ranking> ranking_of(Engine& engine, const Case& c, const DecideRule& rule, bool both_sides) {
  auto against = engine.stages(c, Side::kAgainst, {rule.by, rule.pick});
  if (!against || against->size() != 2) return std::nullopt;
  Ranking ranking;
  const Engine::Stage& by = (*against)[0];
  const Engine::Stage& pick = (*against)[1];
  ranking.dtype = by.dtype;
  ranking.shape = by.shape;
  ranking.unfused = bits_of(by);
  for (const std::uint64_t bits : bits_of(pick)) ranking.picks.push_back(integer_value(pick.dtype, bits));
  ranking.slots = pick.shape.empty() ? 1 : pick.shape.back();
  if (both_sides) {
    if (auto target = engine.stages(c, Side::kTarget, {rule.by}); target && target->size() == 1) {
      ranking.fused = bits_of((*target)[0]);
    }
  }
  return ranking;
}

}  // namespace

Probe make_probe(Engine& engine, std::function<void(const Case&)> before, std::function<void()> after) {
  return [&engine, before = std::move(before), after = std::move(after)](const Case& c, std::size_t rule,
                                                                         bool both_sides) -> std::optional<Ranking> {
    const Operator* op = engine.find(c.op);
    if (op == nullptr || rule >= op->decide.size()) return std::nullopt;
    before(c);
    std::optional<Ranking> ranking = ranking_of(engine, c, op->decide[rule], both_sides);
    after();
    return ranking;
  };
}

}  // namespace fusediff
