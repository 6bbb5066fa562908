// The oneDNN target: its table of operators.
#include "onednn/operators.h"

namespace {

// Of the library that is loaded, not of the headers.
const char* version() {
  static const std::string text = [] {
    const dnnl_version_t* loaded = dnnl_version();
    return fusediff::kit::line_of(loaded->major, ".", loaded->minor, ".", loaded->patch);
  }();
  return text.c_str();
}

}  // namespace

FUSEDIFF_KIT_TARGET_WITH_CONTEXT(fusediff::onednn::Context, "onednn", version(), fusediff::onednn::kBinary,
                                 fusediff::onednn::kEltwise, fusediff::onednn::kInnerProduct,
                                 fusediff::onednn::kLayerNorm, fusediff::onednn::kLogisticAdd,
                                 fusediff::onednn::kMatmul, fusediff::onednn::kMatmulActivation,
                                 fusediff::onednn::kMatmulInt8, fusediff::onednn::kReduction,
                                 fusediff::onednn::kSoftmax)
