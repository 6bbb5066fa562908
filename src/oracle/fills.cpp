#include "oracle/fills.h"

#include <cstring>
#include <string>

#include "base/bytes.h"

namespace fusediff {
namespace {

constexpr std::size_t kMaxRanges = 8;

template <typename Element>
bool any_equal(const std::vector<std::byte>& bytes, std::byte fill) {
  Element wanted;
  std::memset(&wanted, std::to_integer<int>(fill), sizeof wanted);
  const std::size_t n = bytes.size() / sizeof(Element);
  constexpr std::size_t kBlock = 256;  // small enough to stop early, large enough to run as vectors
  for (std::size_t start = 0; start < n; start += kBlock) {
    unsigned found = 0;
    const std::size_t end = std::min(n, start + kBlock);
    for (std::size_t i = start; i < end; ++i) {
      Element element;
      std::memcpy(&element, bytes.data() + i * sizeof element, sizeof element);
      found |= static_cast<unsigned>(element == wanted);
    }
    if (found != 0) return true;
  }
  return false;
}

struct Marks {
  std::vector<bool> bytes;
  std::int64_t count = 0;
  void mark(std::size_t i) {
    bytes[i] = true;
    ++count;
  }
};

// Byte i is the same in all runs of the list.
bool steady(const std::vector<const Execution*>& runs, std::size_t output, std::size_t i) {
  for (const Execution* run : runs) {
    if (run->outputs[output][i] != runs[0]->outputs[output][i]) return false;
  }
  return true;
}

bool keeps_fill(const std::vector<const Execution*>& runs, std::size_t output, std::size_t i) {
  for (const Execution* run : runs) {
    if (run->outputs[output][i] != run->fills.output) return false;
  }
  return true;
}

bool follows(const FillRuns& runs, const std::vector<const Execution*>& other, std::size_t output, std::size_t i) {
  return !other.empty() && other[0]->outputs[output][i] != runs.same[0]->outputs[output][i] &&
         steady(runs.same, output, i) && steady(other, output, i);
}

// Whether any run with another fill gave other bytes: whole buffers first, most have nothing to mark.
bool any_follows(const FillRuns& runs, std::size_t output) {
  for (const std::vector<const Execution*>* others : {&runs.other_output, &runs.other_workspace, &runs.other_guard}) {
    for (const Execution* run : *others) {
      if (!same_bytes(run->outputs[output], runs.same[0]->outputs[output])) return true;
    }
  }
  return false;
}

ByteRanges ranges_of(const Marks& marks, const std::string& output, const std::string& follows) {
  ByteRanges found{output, follows, marks.count, static_cast<std::int64_t>(marks.bytes.size()), {}};
  for (std::size_t i = 0; i < marks.bytes.size() && found.ranges.size() < kMaxRanges; ++i) {
    if (!marks.bytes[i]) continue;
    const std::size_t first = i;
    while (i + 1 < marks.bytes.size() && marks.bytes[i + 1]) ++i;
    found.ranges.emplace_back(first, i);
  }
  return found;
}

std::string share(const ByteRanges& ranges) {
  return std::to_string(ranges.bytes) + "/" + std::to_string(ranges.total) + " bytes";
}

}  // namespace

bool shows_fill(const Call& call, const Execution& execution) {
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    const Tensor& tensor = call.outputs[o];
    const std::vector<std::byte>& bytes = execution.outputs[o];
    if (!tensor.present || tensor.on >= 0 || bytes.empty()) continue;
    const std::byte fill = execution.fills.output;
    const std::size_t size = size_of(tensor.dtype);
    const bool found = size == 1   ? any_equal<std::uint8_t>(bytes, fill)
                       : size == 2 ? any_equal<std::uint16_t>(bytes, fill)
                       : size == 4 ? any_equal<std::uint32_t>(bytes, fill)
                                   : any_equal<std::uint64_t>(bytes, fill);
    if (found) return true;
  }
  return false;
}

FillJudgement judge_fills(const Call& call, const FillRuns& runs, Side side) {
  FillJudgement judgement;
  const auto accuse = [&](FindingClass cls, std::size_t o, const ByteRanges& ranges, std::string what) {
    judgement.ranges.push_back(ranges);
    judgement.evidence.push_back({cls, "fill", call.outputs[o].name, call.op->outputs[o].stage, side, std::move(what)});
  };
  for (std::size_t o = 0; o < call.outputs.size(); ++o) {
    const Tensor& tensor = call.outputs[o];
    const std::size_t size = runs.same[0]->outputs[o].size();
    if (!tensor.present || tensor.on >= 0 || size == 0 || !any_follows(runs, o)) continue;
    Marks unwritten{std::vector<bool>(size), 0}, output = unwritten, workspace = unwritten, guard = unwritten;
    for (std::size_t i = 0; i < size; ++i) {
      if (!runs.other_output.empty() && keeps_fill(runs.same, o, i) && keeps_fill(runs.other_output, o, i)) {
        unwritten.mark(i);
      } else if (follows(runs, runs.other_output, o, i)) {
        output.mark(i);
      } else if (follows(runs, runs.other_workspace, o, i)) {
        workspace.mark(i);
      } else if (follows(runs, runs.other_guard, o, i)) {
        guard.mark(i);
      }
    }
    const std::string& name = tensor.name;
    if (unwritten.count > 0) {
      const ByteRanges ranges = ranges_of(unwritten, name, "");
      accuse(FindingClass::kUnwritten, o, ranges,
             name + " " + share(ranges) + " unwritten: they keep whatever the buffer held");
    }
    const auto dirty = [&](const Marks& marks, const std::string& memory, FindingClass cls, const std::string& why) {
      if (marks.count == 0) return;
      const ByteRanges ranges = ranges_of(marks, name, memory);
      accuse(cls, o, ranges, name + " " + share(ranges) + " " + why);
    };
    dirty(output, "output", FindingClass::kDirty,
          "follow what the output buffers held before the call: it reads what it never wrote");
    dirty(workspace, "workspace", FindingClass::kDirty,
          "follow what the workspace held before the call: it reads what it never wrote");
    dirty(guard, "guard", FindingClass::kOverread, "follow the bytes around the buffers: it reads outside a tensor");
  }
  return judgement;
}

}  // namespace fusediff
