#include "engine/relation_runs.h"

#include "engine/relation_layouts.h"
#include "engine/relation_rows.h"

namespace fusediff {
namespace {

// One path must agree with itself bit for bit where it is deterministic, whatever two paths may differ by.
std::shared_ptr<const Operator> as_one_path(const Operator& op, const std::string& path) {
  auto itself = std::make_shared<Operator>(op);
  if (op.is_deterministic(path)) {
    for (OutputRule& output : itself->outputs) output.agree.ulp.clear();
  }
  return itself;
}

Asked ask_one_cpu(Question question) {
  question.plain.column = "free";
  Way way;
  way.column = "on one CPU";
  way.claim = "kept on one CPU it gives other bits than free to use all";
  way.calls = question.plain.calls;
  way.calls[0].pinned = true;
  question.odd.push_back(std::move(way));
  return question;
}

}  // namespace

Question whole_question(const Prepared& prepared, const std::string& path) {
  Question question;
  question.op = as_one_path(*prepared.call.op, path);
  question.judged = prepared.call;
  question.judged.op = question.op.get();
  question.inputs = std::make_shared<const std::vector<Bytes>>(prepared.inputs);
  for (const Tensor& output : prepared.call.outputs) question.compared.push_back(output.present);
  question.plain.column = "as the case says";
  question.plain.calls = {{prepared.call, question.inputs}};
  return question;
}

Asked ask(const Case& c, const Prepared& prepared, const std::string& path, std::uint64_t max_bytes) {
  switch (c.experiment.relation) {
    case RelationKind::kDense:
      return ask_dense(c, prepared, path, max_bytes);
    case RelationKind::kMoved:
      return ask_moved(prepared, path);
    case RelationKind::kInplace:
      return ask_inplace(c, prepared, path, max_bytes);
    case RelationKind::kOneCpu:
      return ask_one_cpu(whole_question(prepared, path));
    case RelationKind::kRowAlone:
    case RelationKind::kRowsPermuted:
    case RelationKind::kBatchSplit:
    case RelationKind::kSameValue:
      break;
  }
  return ask_rows(c, prepared, path, max_bytes);
}

}  // namespace fusediff
