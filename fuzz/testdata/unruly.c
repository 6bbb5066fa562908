/* A target whose fused path misbehaves as its options say, for tests of the campaign. One operator, copy: y = x, f32.
 * options: "" right; "wrong" y[0] + 1 where N >= 3; at N == 5 "exit", "kill", "hang", "deaf" (hangs with every signal
 * blocked), "close" (all descriptors); "noise" prints; "die_on_open" ends the process in open(). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fusediff_target.h"

static const char* const kSchema =
    "{\"fusediff_schema\": 1, \"operators\": [{\"name\": \"copy\", \"paths\": [\"fused\", \"unfused\"],"
    "\"dims\": {\"N\": {\"range\": [0, 64]}},"
    "\"inputs\": [{\"name\": \"x\", \"shape\": [\"N\"], \"dtype\": \"f32\"}],"
    "\"outputs\": [{\"name\": \"y\", \"shape\": [\"N\"], \"dtype\": \"f32\", \"stage\": 1}]}]}";

static const char* schema(void) { return kSchema; }

static fusediff_status open_context(const char* options, void** context) {
  if (strcmp(options, "die_on_open") == 0) _exit(4);
  *context = strdup(options);
  return FUSEDIFF_OK;
}

static void close_context(void* context) { free(context); }

static volatile int forever = 1;

static void misbehave(const char* how) {
  if (strcmp(how, "exit") == 0) _exit(3);
  if (strcmp(how, "kill") == 0) raise(SIGKILL);
  if (strcmp(how, "deaf") == 0) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (;;) pause();
  }
  if (strcmp(how, "close") == 0) {
    for (int i = 3; i < 64; ++i) close(i);
  }
  if (strcmp(how, "hang") == 0) {
    while (forever) {
    }
  }
}

static fusediff_status run(void* context, const fusediff_call* call) {
  const int64_t n = call->inputs[0].shape[0];
  float* y = call->outputs[0].data;
  if (n > 0) memcpy(y, call->inputs[0].data, (size_t)n * sizeof(float));
  if (strcmp(call->path, "fused") != 0) return FUSEDIFF_OK;
  if (strcmp(context, "wrong") == 0 && n >= 3) y[0] = y[0] + 1.0f;
  if (strcmp(context, "noise") == 0) fputs("the target prints\n", stdout);
  if (n == 5) misbehave(context);
  return FUSEDIFF_OK;
}

FUSEDIFF_EXPORT const fusediff_target_v1* fusediff_target(void) {
  static const fusediff_target_v1 table = {.abi_version = FUSEDIFF_ABI_VERSION,
                                           .struct_size = sizeof(fusediff_target_v1),
                                           .name = "unruly",
                                           .version = "1",
                                           .schema = schema,
                                           .open = open_context,
                                           .close = close_context,
                                           .run = run};
  return &table;
}
