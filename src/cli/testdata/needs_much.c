/* A target with a fault that only a large tensor shows: copy, y = x, where y[0] is wrong once more than 150000 elements
 * of x differ from the one before. The smallest case that shows it does not fit a case's JSON. */
#include <string.h>

#include "fusediff_target.h"

#define ENOUGH 150000

static const char* schema(void) {
  return "{\"fusediff_schema\": 1, \"operators\": [{\"name\": \"copy\", \"paths\": [\"fused\", \"unfused\"],"
         "\"dims\": {\"N\": {\"range\": [0, 1000000]}},"
         "\"inputs\": [{\"name\": \"x\", \"shape\": [\"N\"], \"dtype\": \"f32\"}],"
         "\"outputs\": [{\"name\": \"y\", \"shape\": [\"N\"], \"dtype\": \"f32\", \"stage\": 1}]}]}";
}

static fusediff_status open_context(const char* options, void** context) {
  (void)options;
  *context = NULL;
  return FUSEDIFF_OK;
}

static void close_context(void* context) { (void)context; }

static fusediff_status run(void* context, const fusediff_call* call) {
  (void)context;
  const int64_t n = call->inputs[0].shape[0];
  const float* x = call->inputs[0].data;
  float* y = call->outputs[0].data;
  if (n > 0) memcpy(y, x, (size_t)n * sizeof(float));
  int64_t changes = 0;
  for (int64_t i = 1; i < n; ++i) changes += x[i] != x[i - 1];
  if (strcmp(call->path, "fused") == 0 && changes > ENOUGH) y[0] = y[0] + 1.0f;
  return FUSEDIFF_OK;
}

FUSEDIFF_EXPORT const fusediff_target_v1* fusediff_target(void) {
  static const fusediff_target_v1 table = {.abi_version = FUSEDIFF_ABI_VERSION,
                                           .struct_size = sizeof(fusediff_target_v1),
                                           .name = "needs_much",
                                           .version = "1",
                                           .schema = schema,
                                           .open = open_context,
                                           .close = close_context,
                                           .run = run};
  return &table;
}
