// copy, y = x, for repro.py: right, or as open()'s options or the variable COPY say. With COPY_ABORTS it does not
// survive being loaded.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "fusediff_target.h"

namespace {

#ifdef COPY_ABORTS
struct Aborts {
  Aborts() { std::abort(); }
} const aborts;
#endif

const char* schema() { return R"({"operators": []})"; }

fusediff_status open(const char* options, void** context) {
  *context = new std::string(options);
  return FUSEDIFF_OK;
}

void close(void* context) { delete static_cast<std::string*>(context); }

fusediff_status run(void* context, const fusediff_call* call) {
  const char* variable = std::getenv("COPY");
  const std::string how = *static_cast<std::string*>(context) + (variable == nullptr ? "" : variable);
  if (how == "reject") return FUSEDIFF_REJECTED;
  if (how == "abort") std::abort();
  while (how == "hang") pause();
  const auto count = static_cast<std::size_t>(call->inputs[0].shape[0]);
  std::memcpy(call->outputs[0].data, call->inputs[0].data, count * sizeof(float));
  if (how == "wrong") static_cast<float*>(call->outputs[0].data)[0] = 1;
  return FUSEDIFF_OK;
}

constexpr fusediff_target_v1 kTarget = {FUSEDIFF_ABI_VERSION,
                                        sizeof(fusediff_target_v1),
                                        "mine",
                                        "1",
                                        schema,
                                        open,
                                        close,
                                        nullptr,
                                        run,
                                        nullptr,
                                        nullptr,
                                        nullptr,
                                        nullptr,
                                        nullptr};

}  // namespace

extern "C" FUSEDIFF_EXPORT const fusediff_target_v1* fusediff_target(void) { return &kTarget; }
