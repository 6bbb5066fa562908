/* One fixture library of the loader's tests: which one is chosen by the definitions of the build. */
#include "fusediff_target.h"

#ifndef FIXTURE_VERSION
#define FIXTURE_VERSION FUSEDIFF_ABI_VERSION
#endif
#ifndef FIXTURE_SIZE
#define FIXTURE_SIZE sizeof(fusediff_target_v1)
#endif
#ifndef FIXTURE_SCHEMA
#define FIXTURE_SCHEMA                                                                         \
  "{\"fusediff_schema\": 1, \"operators\": [{\"name\": \"copy\", \"paths\": [\"fused\"],"      \
  "\"dims\": {\"N\": {\"range\": [0, 8]}}, \"inputs\": [{\"name\": \"x\", \"shape\": [\"N\"]," \
  "\"dtype\": \"f32\"}], \"outputs\": [{\"name\": \"y\", \"shape\": [\"N\"], \"dtype\": \"f32\"}]}]}"
#endif

static const char* schema(void) { return FIXTURE_SCHEMA; }

static fusediff_status open_context(const char* options, void** context) {
  *context = 0;
  return options[0] == 0 ? FUSEDIFF_OK : FUSEDIFF_REJECTED;
}

static void close_context(void* context) { (void)context; }

#ifndef FIXTURE_NO_RUN
static fusediff_status run(void* context, const fusediff_call* call) {
  (void)context;
  (void)call;
  return FUSEDIFF_UNSUPPORTED;
}
#endif

#ifdef FIXTURE_HALF_MEMORY
static void* take(void* context, size_t bytes) {
  (void)context;
  (void)bytes;
  return 0;
}
#endif

static const fusediff_target_v1 table = {
    .abi_version = FIXTURE_VERSION,
    .struct_size = FIXTURE_SIZE,
    .name = "fixture",
    .version = "1",
    .schema = schema,
    .open = open_context,
    .close = close_context,
#ifndef FIXTURE_NO_RUN
    .run = run,
#endif
#ifdef FIXTURE_HALF_MEMORY
    .alloc = take,
#endif
};

#ifdef FIXTURE_NO_SYMBOL
const fusediff_target_v1* fixture_other_name(void);
const fusediff_target_v1* fixture_other_name(void) { return &table; }
#elif defined(FIXTURE_NULL_TABLE)
FUSEDIFF_EXPORT const fusediff_target_v1* fusediff_target(void) { return table.abi_version == 0 ? &table : 0; }
#else
FUSEDIFF_EXPORT const fusediff_target_v1* fusediff_target(void) { return &table; }
#endif
