#include "mutate/mutate.h"
