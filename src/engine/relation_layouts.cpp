#include "engine/relation_layouts.h"

#include <algorithm>

#include "model/expand.h"
#include "run/placement.h"

namespace fusediff {
namespace {

Verdict skip(std::string reason) { return {Verdict::Kind::kSkip, std::move(reason), {}}; }
Verdict vacuous(std::string reason) { return {Verdict::Kind::kVacuous, std::move(reason), {}}; }

// The same values for a call that lays them out otherwise.
Inputs laid_out(const Prepared& prepared, const Call& call) {
  auto inputs = std::make_shared<std::vector<Bytes>>(prepared.inputs);
  for (std::size_t i = 0; i < inputs->size(); ++i) {
    const Tensor& before = prepared.call.inputs[i];
    if (!before.present || stored_shape(before) == stored_shape(call.inputs[i])) continue;
    (*inputs)[i] = stored(call.inputs[i], expanded(before, prepared.inputs[i]));
  }
  return inputs;
}

// Memory of a call: an input or output with what lies on it, by name.
struct Memory {
  std::string name;
  std::vector<std::size_t> inputs, outputs;
};

std::vector<Memory> memories(const Call& call) {
  std::vector<Memory> all;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i].present || element_count(call.inputs[i]) == 0) continue;
    all.push_back({call.inputs[i].name, {i}, {}});
    for (std::size_t o = 0; o < call.outputs.size(); ++o) {
      if (!call.outputs[o].present || call.outputs[o].on != static_cast<int>(i)) continue;
      all.back().outputs.push_back(o);
      all.back().name += " with " + call.outputs[o].name;
    }
  }
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    const Tensor& output = call.outputs[o];
    if (output.present && output.on < 0 && element_count(output) > 0) all.push_back({output.name, {}, {o}});
  }
  return all;
}

// Each memory in turn takes its tensors from `odd`, all else as in `plain`.
std::vector<Way> one_at_a_time(const Prepared& prepared, const Call& plain, const Call& odd) {
  std::vector<Way> ways;
  for (const Memory& memory : memories(odd)) {
    Call call = plain;
    for (const std::size_t i : memory.inputs) call.inputs[i] = odd.inputs[i];
    for (const std::size_t o : memory.outputs) call.outputs[o] = odd.outputs[o];
    if (call.inputs == plain.inputs && call.outputs == plain.outputs) continue;
    Way way;
    way.column = memory.name;
    way.calls = {{call, laid_out(prepared, call)}};
    ways.push_back(std::move(way));
  }
  return ways;
}

// Bytes from an address that is 0 modulo kMovedWithin to where a tensor of that alignment lies in the middle, at an
// offset of 0.
std::int64_t middle_of(const Tensor& tensor) {
  Placed placed;
  placed.align = static_cast<std::size_t>(tensor.align);
  placed.place = Place::kMiddle;
  constexpr std::uintptr_t kPages = std::uintptr_t{1} << 20;
  return static_cast<std::int64_t>(address_in(placed, kPages, 2 * kPages)) % kMovedWithin;
}

// In the middle with the first element at `at` modulo kMovedWithin, or as near before as the alignment allows.
void move_to(std::int64_t at, Tensor& tensor) {
  const auto element = static_cast<std::int64_t>(size_of(tensor.dtype));
  tensor.place = Place::kMiddle;
  tensor.offset = 0;
  if (kMovedWithin % tensor.align != 0 || tensor.align % element != 0) return;
  const std::int64_t aligned = at / tensor.align * tensor.align;
  tensor.offset = (aligned - middle_of(tensor) + kMovedWithin) % kMovedWithin / element;
}

Call moved_to(std::int64_t at, const Call& call) {
  Call moved = call;
  for (Tensor& tensor : moved.inputs) move_to(at, tensor);
  for (Tensor& tensor : moved.outputs) move_to(at, tensor);
  return moved;
}

// The case with every output apart from inputs, where it need not lie there.
Case apart(const Case& c) {
  Case base = c;
  base.experiment = {};
  std::erase_if(base.layout, [](const auto& entry) { return !entry.second.on.empty(); });
  return base;
}

Case put_on(const Case& base, const InplaceRule& rule) {
  Case on = base;
  on.layout[rule.output] = {};
  on.layout[rule.output].on = rule.input;
  return on;
}

}  // namespace

Asked ask_dense(const Case& c, const Prepared& prepared, const std::string& path, std::uint64_t max_bytes) {
  Case base = c;
  base.experiment = {};
  std::erase_if(base.layout, [](const auto& entry) { return entry.second.on.empty(); });
  Result<Call> dense = bind(base, *prepared.call.op, max_bytes);
  if (!dense.ok()) return skip("laid out densely: " + dense.error().what);
  if (dense->inputs == prepared.call.inputs && dense->outputs == prepared.call.outputs)
    return vacuous("the case has no layout of its own");
  Question question = whole_question(prepared, path);
  Way way = std::move(question.plain);
  way.claim = "laid out as the case says it gives other bits than laid out densely";
  way.singles = [&prepared, dense = *dense] { return one_at_a_time(prepared, dense, prepared.call); };
  question.odd.push_back(std::move(way));
  question.plain = {};
  question.plain.column = "dense";
  question.plain.calls = {{*dense, laid_out(prepared, *dense)}};
  return question;
}

Asked ask_moved(const Prepared& prepared, const std::string& path) {
  Question question = whole_question(prepared, path);
  std::int64_t step = kMovedWithin;
  const std::vector<Memory> all = memories(prepared.call);
  if (all.empty()) return vacuous("only empty tensors");
  for (const Memory& memory : all) {
    for (const std::size_t i : memory.inputs) step = std::min(step, prepared.call.inputs[i].align);
    for (const std::size_t o : memory.outputs) step = std::min(step, prepared.call.outputs[o].align);
  }
  if (step >= kMovedWithin) return vacuous("no tensor may lie at another address modulo 64");
  for (std::int64_t at = 0; at < kMovedWithin; at += step) {
    Way way;
    way.column = "moved";
    way.at = std::to_string(at);
    way.claim =
        "with every tensor moved to " + way.at + " bytes modulo 64 it gives other bits than where the case puts them";
    way.calls = {{moved_to(at, prepared.call), question.inputs}};
    way.singles = [&prepared, at] { return one_at_a_time(prepared, prepared.call, moved_to(at, prepared.call)); };
    question.odd.push_back(std::move(way));
  }
  return question;
}

Asked ask_inplace(const Case& c, const Prepared& prepared, const std::string& path, std::uint64_t max_bytes) {
  const Operator& op = *prepared.call.op;
  Case base = apart(c);
  std::vector<const InplaceRule*> fitting;
  std::string why_not = "the record allows no output on an input: it has no `inplace`, or only what always lies there";
  for (const InplaceRule& rule : op.inplace) {
    if (rule.always) continue;
    Result<Call> call = bind(put_on(base, rule), op, max_bytes);
    if (!call.ok()) {  // strides that no output may have: the values without them
      Case plainer = base;
      plainer.layout.erase(rule.input);
      plainer.layout.erase(rule.output);
      call = bind(put_on(plainer, rule), op, max_bytes);
      if (call.ok()) base = std::move(plainer);
    }
    if (call.ok()) fitting.push_back(&rule);
    if (!call.ok()) why_not = "no output may lie on an input in this case: " + call.error().what;
  }
  if (fitting.empty()) return vacuous(why_not);
  const Result<Call> plain = bind(base, op, max_bytes);
  if (!plain.ok()) return skip("with outputs apart: " + plain.error().what);
  Question question = whole_question(prepared, path);
  question.plain.column = "apart";
  question.plain.calls = {{*plain, laid_out(prepared, *plain)}};
  for (const InplaceRule* rule : fitting) {
    const Result<Call> call = bind(put_on(base, *rule), op, max_bytes);
    if (!call.ok()) continue;
    Way way;
    way.column = rule->output + " on " + rule->input;
    way.claim = "with " + way.column + " it gives other bits than with " + rule->output + " apart";
    way.calls = {{*call, laid_out(prepared, *call)}};
    question.odd.push_back(std::move(way));
  }
  return question;
}

}  // namespace fusediff
