// What a relation asks of one path: ways to compute the same outputs, as calls ready to be made, and how their outputs
// are laid beside each other. Makes no call and judges nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/check.h"
#include "engine/prepare.h"
#include "engine/truth.h"
#include "model/call.h"
#include "model/case.h"

namespace fusediff {

using Inputs = std::shared_ptr<const std::vector<Bytes>>;  // [call.inputs] stored elements
// From the outputs of each call of a way to those of the judged call, empty where not compared.
using Compose = std::function<std::vector<Bytes>(std::span<const std::vector<Bytes>> calls)>;

struct PathCall {
  Call call;
  Inputs inputs;
  bool pinned = false;
};

// One way to compute the outputs.
struct Way {
  std::string column;  // what it is, in two or three words
  std::string claim;   // of an odd way: what holds when its outputs differ from the plain way's
  std::string at;      // kMoved: where the tensors lie
  std::vector<PathCall> calls;
  Compose compose;  // absent: the outputs of the only call as they are
  // Of an odd way: the same with one tensor odd at a time, each named in its column; absent: not a matter of tensors.
  std::function<std::vector<Way>()> singles = {};
};

struct Question {
  std::shared_ptr<const Operator> op;  // what `judged` is bound to: the record as one path must agree with itself
  Call judged;                         // the call whose outputs both ways compute
  Inputs inputs;                       // of it
  std::vector<bool> compared;          // [judged.outputs]
  Way plain;
  std::vector<Way> odd;                  // one after the other, until one differs from the plain way
  std::function<Truth(Truth)> truth_of;  // the judged call's truth out of the case's; absent: it is the case's
  bool is_case = true;                   // judged has the shapes of the case
};

// Nothing to ask: a skip that says what the record lacks, or vacuous.
using Asked = std::variant<Question, Verdict>;

// What the case's relation asks of the path. REQUIRES: it is not kSameValue.
Asked ask(const Case& c, const Prepared& prepared, const std::string& path, std::uint64_t max_bytes);

// The case as it is, with no odd way yet.
Question whole_question(const Prepared& prepared, const std::string& path);

}  // namespace fusediff
