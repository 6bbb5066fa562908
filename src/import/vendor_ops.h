// Which of other tools' operators are ours: names of tensors, attributes and choices, as data. A new operator is one
// record in vendor_ops.cpp. How their files are read is in import/suite_*.
#pragma once

#include <span>
#include <string_view>

namespace fusediff {

struct VendorAttr {
  std::string_view theirs;
  std::string_view ours;                           // an attribute; "": ignored
  std::string_view size;                           // or: an expression over dims that it states
  std::span<const std::string_view> choices = {};  // of a choice that they number: [their number] our word
};

struct VendorOp {
  std::string_view theirs;
  std::string_view ours;
  std::span<const std::string_view> inputs;   // ours, in their order
  std::span<const std::string_view> outputs;  // likewise
  std::span<const VendorAttr> attrs;
};

std::span<const VendorOp> vendor_ops();

}  // namespace fusediff
