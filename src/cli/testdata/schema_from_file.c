/* A target whose schema is the text of the file that FUSEDIFF_FIXTURE_SCHEMA names; its paths offer nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "fusediff_target.h"

static char text[1 << 22];

static const char* schema(void) {
  const char* name = getenv("FUSEDIFF_FIXTURE_SCHEMA");
  FILE* file = name == 0 ? 0 : fopen(name, "rb");
  if (file == 0) return 0;
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  return text;
}

static fusediff_status open_context(const char* options, void** context) {
  (void)options;
  *context = 0;
  return FUSEDIFF_OK;
}

static void close_context(void* context) { (void)context; }

static fusediff_status run(void* context, const fusediff_call* call) {
  (void)context;
  (void)call;
  return FUSEDIFF_UNSUPPORTED;
}

static const fusediff_target_v1 table = {
    .abi_version = FUSEDIFF_ABI_VERSION,
    .struct_size = sizeof(fusediff_target_v1),
    .name = "schema_from_file",
    .version = "1",
    .schema = schema,
    .open = open_context,
    .close = close_context,
    .run = run,
};

FUSEDIFF_EXPORT const fusediff_target_v1* fusediff_target(void) { return &table; }
