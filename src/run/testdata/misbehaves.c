/* A target that misbehaves as the attribute "how" of a call says, for tests of isolated targets. One operator, copy:
 * y = x, f32, dense. With -DOWN_MEMORY its tensors lie in memory of its own. options: text for the note. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fusediff_target.h"

static const char* schema(void) {
  return "{\"fusediff_schema\": 1, \"operators\": [{\"name\": \"copy\", \"paths\": [\"fused\", \"unfused\"],"
         "\"dims\": {\"N\": {\"range\": [0, 64]}}, \"attrs\": [{\"name\": \"how\", \"choice\": [\"well\"]}],"
         "\"inputs\": [{\"name\": \"x\", \"shape\": [\"N\"], \"dtype\": \"f32\"}],"
         "\"outputs\": [{\"name\": \"y\", \"shape\": [\"N\"], \"dtype\": \"f32\"}]}]}";
}

static _Thread_local char words[256];
static _Thread_local char note[256];

FUSEDIFF_EXPORT const char* fusediff_note(void);
const char* fusediff_note(void) { return note; }

static fusediff_status open_context(const char* options, void** context) {
  if (strcmp(options, "refused") == 0) {
    strcpy(words, "no such option");
    return FUSEDIFF_REJECTED;
  }
  *context = strdup(options);
  return FUSEDIFF_OK;
}

static void close_context(void* context) { free(context); }

static fusediff_status workspace_bytes(void* context, const fusediff_call* call, size_t* bytes) {
  (void)context;
  *bytes = strcmp(call->attrs[0].s, "workspace") == 0 ? 100 : 0;
  return FUSEDIFF_OK;
}

static volatile float seen;

static fusediff_status run(void* context, const fusediff_call* call) {
  const char* how = call->attrs[0].s;
  const size_t n = (size_t)call->inputs[0].shape[0];
  float* x = call->inputs[0].data;
  float* y = call->outputs[0].data;
  if (strcmp(how, "exits") == 0) _exit(3);
  if (strcmp(how, "forks_and_exits") == 0) {
    if (fork() == 0) {
      for (;;) pause();
    }
    _exit(3);
  }
  if (strcmp(how, "aborts") == 0) {
    fputs("last line\n", stderr);
    abort();
  }
  if (strcmp(how, "killed") == 0) raise(SIGKILL);
  if (strcmp(how, "hangs") == 0) {
    for (;;) pause();
  }
  if (strcmp(how, "fails") == 0) {
    strcpy(words, "it did not work");
    return FUSEDIFF_FAILED;
  }
  if (n > 0) memcpy(y, x, n * sizeof(float));
  if (strcmp(how, "overruns") == 0) y[n] = 1;
  if (strcmp(how, "underruns") == 0) y[-1] = 1;
  if (strcmp(how, "overreads") == 0) seen = x[n];
  if (strcmp(how, "changes") == 0) x[0] = -1;
  if (strcmp(how, "workspace") == 0) memset(call->workspace, 1, call->workspace_size + 1);
  if (strcmp(how, "environment") == 0) y[0] = getenv("MISBEHAVES") == NULL ? 0 : (float)atof(getenv("MISBEHAVES"));
  if (strcmp(how, "order") == 0) y[0] = (float)call->attrs[1].i;
  if (strcmp(how, "prints") == 0) puts("a line");
  snprintf(note, sizeof note, "%s", (const char*)context);
  return FUSEDIFF_OK;
}

static const char* last_error(void) { return words; }

#ifdef OWN_MEMORY
static void* alloc(void* context, size_t bytes) {
  (void)context;
  return malloc(bytes);
}
static void release(void* context, void* memory) {
  (void)context;
  free(memory);
}
static fusediff_status write_memory(void* context, void* memory, const void* host, size_t bytes) {
  (void)context;
  memcpy(memory, host, bytes);
  return FUSEDIFF_OK;
}
static fusediff_status read_memory(void* context, void* host, const void* memory, size_t bytes) {
  (void)context;
  memcpy(host, memory, bytes);
  return FUSEDIFF_OK;
}
#endif

FUSEDIFF_EXPORT const fusediff_target_v1* fusediff_target(void) {
  static const fusediff_target_v1 table = {.abi_version = FUSEDIFF_ABI_VERSION,
                                           .struct_size = sizeof(fusediff_target_v1),
                                           .name = "misbehaves",
                                           .version = "1",
                                           .schema = schema,
                                           .open = open_context,
                                           .close = close_context,
                                           .workspace_bytes = workspace_bytes,
                                           .run = run,
                                           .last_error = last_error,
#ifdef OWN_MEMORY
                                           .alloc = alloc,
                                           .release = release,
                                           .write = write_memory,
                                           .read = read_memory,
#endif
  };
  return &table;
}
