#include "model/schema_json.h"
