#include "model/case_json.h"
