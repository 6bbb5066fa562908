// A description file: operators as their schema records, and for each path the kernels that compute it, in order. Read
// once; checked so that a call can only fail at what OpenCL says. It runs nothing and knows no device. The keys are
// explained in README.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "opencl/expression.h"

namespace fusediff::opencl {

enum class ArgKind {
  kTensor,   // a pointer to the first element; null where it is absent
  kScratch,  // a pointer into scratch memory
  kInt,      // an expression, as int
  kLong,     // an expression, as long
  kStride,   // a stride of a tensor in elements, as int
  kReal,     // a float attribute, in `type`
  kLocal     // local memory: an expression gives its bytes
};

struct Arg {
  ArgKind kind = ArgKind::kInt;
  std::string text;  // the name or the expression
  int dim = 0;       // kStride
  std::string type;  // kReal: float, double, or a name of the operator's types
};

// One kernel launch.
struct Step {
  std::string kernel;
  std::vector<Arg> args;
  std::vector<std::string> global;  // expressions; the launch is left out where one is 0
  std::vector<std::string> local;   // expressions, or none; global is rounded up to a multiple
  std::string condition;            // expression, or "": always
};

// Memory that the steps of one call share: `count` elements of a dtype or of one of the operator's types.
struct Scratch {
  std::string name;
  std::string type;
  std::string count;
};

struct DescribedPath {
  std::string name;
  std::vector<Step> steps;
};

// Where a dim of the schema is read off a call.
struct DimSource {
  std::string dim;
  std::string tensor;  // "": of the attribute
  size_t axis = 0;
  std::string attribute;  // an int attribute that is exactly this dim
};

struct Attribute {
  std::string name;
  std::vector<std::string> choices;  // in expressions a choice is its position here
  bool is_real = false;              // not to be had in expressions
};

struct DescribedOperator {
  std::string name;
  std::vector<std::string> tensors;
  std::vector<DimSource> dims;
  std::vector<Attribute> attributes;
  std::map<std::string, std::string> types;  // macro of the kernels -> the tensor whose element type it is
  std::vector<Scratch> scratch;
  std::vector<DescribedPath> paths;
};

struct Description {
  std::string kernels;  // path of the file of kernels
  std::string schema;   // JSON, as fusediff_target_v1.schema wants it
  std::vector<DescribedOperator> operators;

  // Null where there is none of that name.
  const DescribedOperator* find(std::string_view op) const;
};

// Throws kit::Failure (FAILED) with one line: the place in the JSON and what is wrong. `folder` is the one that a
// relative name of the kernels' file starts from.
Description read_description(std::string_view json, const std::string& folder);

// The same from a file; the text then begins with its name.
Description load_description(const std::string& file);

}  // namespace fusediff::opencl
