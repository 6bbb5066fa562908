// Remembers what the last case drew: a mutated case, and a smaller one, mostly say the same of most inputs.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/call.h"
#include "model/case.h"

namespace fusediff {

class DrawCache {
 public:
  // draw_values(), or its result of last time where nothing that it depends on has changed. One entry an input name.
  Result<std::vector<std::byte>> draw(const InputValue& value, const InputRule& rule, const Tensor& tensor,
                                      const Call& call);

 private:
  struct Entry {
    const Operator* op = nullptr;
    InputValue value;
    DType dtype{};
    std::vector<std::int64_t> shape;   // logical and
    std::vector<std::int64_t> stored;  // stored: `set` names logical indices
    std::vector<std::byte> bytes;
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace fusediff
