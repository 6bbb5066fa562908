#include "engine/relation_rows.h"

#include <algorithm>
#include <numeric>

#include "base/rng.h"
#include "engine/row_slices.h"

namespace fusediff {
namespace {

Verdict skip(std::string reason) { return {Verdict::Kind::kSkip, std::move(reason), {}}; }
Verdict vacuous(std::string reason) { return {Verdict::Kind::kVacuous, std::move(reason), {}}; }

std::vector<std::int64_t> counted(std::int64_t first, std::int64_t end) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(end - first));
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

std::string span_text(std::int64_t first, std::int64_t end) {
  return end - first == 1 ? std::to_string(first) : std::to_string(first) + ".." + std::to_string(end - 1);
}

PathCall path_call(RowsCall part) {
  return {std::move(part.call), std::make_shared<const std::vector<Bytes>>(std::move(part.inputs))};
}

// What the three relations of rows have in common.
class RowsQuestion {
 public:
  RowsQuestion(const Case& c, const Prepared& prepared, const std::string& path, std::uint64_t max_bytes)
      : case_(c), prepared_(prepared), path_(path), max_bytes_(max_bytes), rows_(rows_of(prepared.call)) {
    for (const int axis : rows_.outputs) compared_.push_back(axis >= 0);
    for (std::size_t o = 0; o < compared_.size(); ++o) compared_[o] = compared_[o] && prepared.call.outputs[o].present;
  }

  Asked ask() {
    if (rows_.count < 2)
      return vacuous("fewer than two rows (" + rows_.dim + " = " + std::to_string(rows_.count) + ")");
    const Experiment& e = case_.experiment;
    if (e.row >= rows_.count || e.row < 0) {
      return skip("there is no row " + std::to_string(e.row) + ": " + rows_.dim + " is " + std::to_string(rows_.count));
    }
    if (std::none_of(compared_.begin(), compared_.end(), [](bool compared) { return compared; }))
      return vacuous("no output of `rows` is asked for");
    if (e.relation == RelationKind::kRowAlone) return alone(e.row);
    if (e.relation == RelationKind::kRowsPermuted) return permuted(e.seed);
    return split(e.row);
  }

 private:
  Result<RowsCall> part(std::span<const std::int64_t> picked) {
    return call_of_rows(case_, prepared_, rows_, picked, max_bytes_);
  }

  Question start() {
    Question question = whole_question(prepared_, path_);
    question.compared = compared_;
    question.plain.compose = picker({});
    return question;
  }

  // The rows `picked` of each compared output of the whole batch; all of them as they are where `picked` is empty.
  std::function<std::vector<Bytes>(std::span<const std::vector<Bytes>>)> picker(std::vector<std::int64_t> picked) {
    return [rows = rows_, compared = compared_, outputs = prepared_.call.outputs,
            picked = std::move(picked)](std::span<const std::vector<Bytes>> parts) {
      std::vector<Bytes> composed(outputs.size());
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        if (!compared[o]) continue;
        const Axis axis = axis_at(outputs[o].shape, rows.outputs[o], size_of(outputs[o].dtype));
        composed[o] = picked.empty() ? parts[0][o] : slices(parts[0][o], axis, picked);
      }
      return composed;
    };
  }

  Asked alone(std::int64_t row) {
    const std::vector<std::int64_t> picked = {row};
    Result<RowsCall> small = part(picked);
    if (!small.ok()) return skip(small.error().what);
    Question question = start();
    question.is_case = false;
    question.judged = small->call;
    question.judged.op = question.op.get();
    question.plain.column = "in its batch";
    question.plain.compose = picker(picked);
    Way way;
    way.column = "row alone";
    way.claim =
        "row " + std::to_string(row) + " alone gives other bits than in its batch of " + std::to_string(rows_.count);
    way.compose = [compared = compared_](std::span<const std::vector<Bytes>> parts) {
      std::vector<Bytes> outputs = parts[0];
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        if (!compared[o]) outputs[o].clear();
      }
      return outputs;
    };
    way.calls.push_back(path_call(*std::move(small)));
    question.inputs = way.calls[0].inputs;
    question.odd.push_back(std::move(way));
    question.truth_of = [rows = rows_, outputs = prepared_.call.outputs, picked](Truth truth) {
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        const Axis axis = axis_at(outputs[o].shape, rows.outputs[o], 1);
        for (std::vector<double>* values : {&truth.outputs[o].value, &truth.outputs[o].absolute}) {
          if (rows.outputs[o] < 0) values->clear();
          if (!values->empty()) *values = slices(*values, axis, picked);
        }
      }
      return truth;
    };
    return question;
  }

  Asked permuted(std::uint64_t seed) {
    std::vector<std::int64_t> order = counted(0, rows_.count);
    Rng rng(seed);
    for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[rng.below(left)]);
    if (std::is_sorted(order.begin(), order.end())) return vacuous("the order of this seed moves no row");
    Result<RowsCall> moved = part(order);
    if (!moved.ok()) return skip(moved.error().what);
    std::vector<std::int64_t> back(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    Question question = start();
    Way way;
    way.column = "rows permuted";
    way.claim = "the rows in another order give other bits";
    way.calls.push_back(path_call(*std::move(moved)));
    way.compose = picker(std::move(back));
    question.odd.push_back(std::move(way));
    return question;
  }

  Asked split(std::int64_t row) {
    if (row == 0) return vacuous("all rows are in the second part");
    Result<RowsCall> front = part(counted(0, row));
    if (!front.ok()) return skip(front.error().what);
    Result<RowsCall> back = part(counted(row, rows_.count));
    if (!back.ok()) return skip(back.error().what);
    Question question = start();
    Way way;
    way.column = "in two calls";
    way.claim = "rows " + span_text(0, row) + " and " + span_text(row, rows_.count) +
                " in two calls give other bits than all " + std::to_string(rows_.count) + " in one";
    way.calls.push_back(path_call(*std::move(front)));
    way.calls.push_back(path_call(*std::move(back)));
    way.compose = [rows = rows_, compared = compared_, outputs = prepared_.call.outputs,
                   row](std::span<const std::vector<Bytes>> parts) {
      std::vector<Bytes> composed(outputs.size());
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        if (!compared[o]) continue;
        const Axis axis = axis_at(outputs[o].shape, rows.outputs[o], size_of(outputs[o].dtype));
        composed[o] = joined(parts[0][o], parts[1][o], axis, static_cast<std::size_t>(row));
      }
      return composed;
    };
    question.odd.push_back(std::move(way));
    return question;
  }

  const Case& case_;
  const Prepared& prepared_;
  const std::string& path_;
  const std::uint64_t max_bytes_;
  const Rows rows_;
  std::vector<bool> compared_;
};

}  // namespace

Asked ask_rows(const Case& c, const Prepared& prepared, const std::string& path, std::uint64_t max_bytes) {
  if (!prepared.call.op->rows) {
    return skip("the record of " + c.op +
                " has no `rows`: add it to ask whether a row depends on the others of its batch");
  }
  return RowsQuestion(c, prepared, path, max_bytes).ask();
}

}  // namespace fusediff
