// One case of captured tensors, planned: which tensor goes where, what sizes, dtypes and attributes that makes, what is
// drawn because nobody captured it. Nothing is read or written yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "import/captured.h"
#include "import/dims.h"
#include "import/names.h"
#include "import/stream.h"
#include "import/tensors.h"
#include "model/case.h"
#include "model/safetensors.h"
#include "model/schema.h"

namespace fusediff {

// A tensor of one of the files.
struct Pooled {
  std::size_t file = 0;
  std::size_t index = 0;  // in its file
  const CapturedTensor* tensor = nullptr;
};

// An input that comes from a file.
struct Taken {
  const InputRule* rule = nullptr;
  std::size_t pooled = 0;
  TensorPlan plan;
  std::shared_ptr<StreamCount> count = std::make_shared<StreamCount>();
};

struct CasePlan {
  std::string name;
  Case c;
  std::vector<Taken> taken;
  std::vector<StoredSpan> spans;
  std::filesystem::path made;  // the safetensors file while it is written; "": given up
};

class Planner {
 public:
  // All of them outlive it.
  Planner(const Operator& op, const TensorOptions& options, const std::vector<Pooled>& pool, const Say& say)
      : op_(op), options_(options), pool_(pool), say_(say) {}

  // Fills plan.c and plan.taken; plan.name is there. Errors name the tensor.
  Status plan(const TensorGroup& group, CasePlan& plan) const;

 private:
  Status take(const InputRule& rule, std::size_t pooled, std::vector<SizeClaim>& claims, CasePlan& plan) const;
  void claim_outputs(const TensorGroup& group, std::vector<SizeClaim>& claims) const;
  Status take_attrs(const TensorGroup& group, std::vector<SizeClaim>& claims, Case& c) const;
  void fill_in(Case& c) const;
  Status check_size(const CasePlan& plan) const;

  const Operator& op_;
  const TensorOptions& options_;
  const std::vector<Pooled>& pool_;
  const Say& say_;
};

}  // namespace fusediff
