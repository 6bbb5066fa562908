#include "model/call.h"
