// The `relation` experiment: the target side's path in two ways that must give the same bits, and, when they do not,
// the reruns that tell whether it is the way that makes the difference. The against side only lends its truth.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/experiment.h"
#include "engine/judge.h"
#include "engine/relation_runs.h"
#include "engine/same_value.h"
#include "engine/side.h"
#include "model/recording.h"

namespace fusediff {

class RelationCheck : public ExperimentCheck {
 public:
  explicit RelationCheck(const Subject& subject);

  std::optional<Verdict> first_look() override;
  std::string suspicion() const override;
  Verdict explain() override;

  const std::vector<bool>& compared() const override { return compared_; }
  const Budget& budget() const override { return budget_; }

  // Instead of a first look: the runs in which the difference shows, as engine/record.h says; the last ones where it
  // does not. The outputs are those of judged_call(), in both ways.
  Status record(bool run, Recording& recording);
  const Call& judged_call() const { return asking_.question.judged; }
  Truth judged_truth();

 private:
  // A way, run: each call as it came back, and what they say together of the judged call.
  struct Seen {
    std::vector<Execution> calls;
    Execution together;
    bool ok() const { return together.ending == Ending::kOk; }
  };
  enum : std::size_t { kOdd, kPlain };  // shown as the target and the against side
  // What is asked, and of which case: its inputs are `prepared`.
  struct Asking {
    std::shared_ptr<const Prepared> prepared;
    Question question;
    bool even = false;             // kSameValue: the plain way is the odd one with its rows levelled
    std::vector<bool> alike = {};  // of it: [outputs] whose positions no input tells apart
    RowFlags blind = {};           // of it: rows in which position does not matter
  };

  std::variant<Asking, Verdict> ask_of(const Case& c, std::shared_ptr<const Prepared> prepared);
  Seen run_way(const Way& way, std::size_t which, bool pinned);
  Seen run_plain(const Seen& odd, bool pinned);
  std::optional<Verdict> nothing_to_judge(const Seen& seen) const;
  std::optional<Verdict> look();
  std::optional<Verdict> look_at_odd();
  std::optional<Verdict> find_blind_rows();
  std::optional<RowFlags> even_in_truth(const Prepared& prepared);
  bool same_bits() const;
  bool fill_shows();
  void show_executions();

  void ask_for_every_output();
  void judge_calls(std::size_t which, Judgement& judgement);
  void rerun_calls(std::size_t which, Judgement& judgement);
  Truth truth();
  std::vector<Bytes> other_path(const Prepared& prepared);
  bool rerun_ways(Judgement& judgement, std::array<Rate, 2>& rates);
  Judgement difference(const Truth* truth) const;
  Finding finding(const Judgement& judgement, const std::array<Rate, 2>& rates);
  bool differs(const Way& way);
  void note_where_it_moves();
  void record_way(const Way& way, Recording& recording) const;
  void record_odd(std::size_t odd, Recording& recording) const;
  void record_outputs(Recording& recording);
  void note_single_tensors();

  const Subject subject_;
  const PathOf& path_;
  const std::string name_;  // of the relation
  Asking asking_;
  std::size_t odd_ = 0;       // which of the odd ways
  std::array<Seen, 2> seen_;  // [kOdd, kPlain]
  std::vector<bool> compared_;
  Judgement first_;
  std::vector<std::string> notes_;
  Budget budget_;
};

}  // namespace fusediff
