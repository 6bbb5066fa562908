/* A shared library that is no target. */
#include "fusediff_target.h"

FUSEDIFF_EXPORT int answer(void);
FUSEDIFF_EXPORT int answer(void) { return 42; }
