#include "torch/aten.h"

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <string_view>

namespace fusediff::torch {
namespace {

at::ScalarType scalar_type(const kit::Tensor& tensor) {
  switch (tensor.dtype()) {
    case FUSEDIFF_F64:
      return at::kDouble;
    case FUSEDIFF_F32:
      return at::kFloat;
    case FUSEDIFF_F16:
      return at::kHalf;
    case FUSEDIFF_BF16:
      return at::kBFloat16;
    case FUSEDIFF_I64:
      return at::kLong;
    case FUSEDIFF_I32:
      return at::kInt;
    default:
      kit::unsupported(tensor.name(), " is ", kit::dtype_name(tensor.dtype()), ", which this target does not offer");
  }
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

}  // namespace

at::Tensor aten(const kit::Tensor& tensor) {
  std::vector<int64_t> shape, stride;
  for (int dim = 0; dim < tensor.rank(); ++dim) {
    shape.push_back(tensor.size(dim));
    stride.push_back(tensor.stride(dim));
  }
  const at::ScalarType type = scalar_type(tensor);
  if (tensor.count() == 0) {
    return at::empty_strided(shape, stride, type);
  }
  kit::require(tensor.present(), tensor.name(), " is needed and absent");
  return at::from_blob(tensor.data(), shape, stride, type);
}

at::Tensor aten_if_present(const kit::Tensor& tensor) { return tensor.present() ? aten(tensor) : at::Tensor(); }

void give(const kit::Tensor& output, const at::Tensor& result) {
  if (output.present() && output.data() != result.data_ptr()) {
    aten(output).copy_(result);
  }
}

at::ScalarType wide_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor widened(const at::Tensor& tensor) { return tensor.to(wide_type(tensor)); }

void rethrow_as_failure() {
  try {
    throw;
  } catch (const c10::NotImplementedError& error) {
    kit::unsupported(first_line(error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    const std::string_view line = first_line(error.what_without_backtrace());
    if (line.find("not implemented for") != std::string_view::npos) {
      kit::unsupported(line);
    }
    kit::fail(line);
  }
}

kit::Path reference_of(const kit::Operator& builtin) {
  for (const kit::Path& path : builtin.paths) {
    if (path.name != nullptr && std::string_view(path.name) == "unfused") {
      return {"reference", path.run, path.workspace_bytes};
    }
  }
  return {};
}

}  // namespace fusediff::torch
