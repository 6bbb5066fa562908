// What the files of planted faults share. Each is compiled twice: into planted_<name>, and with PLANTED_CLEAN into its
// clean twin planted_<name>_clean, where kFaulty is false. The first line of each says what has to be found:
//   // EXPECT: class=<class> op=<operator> experiment=<experiment> [stage=<output to blame>] [output=<output>]
//   //         [relation=<relation>] [cause=<cause>]
// in one line; a near miss, in which nothing may be found, has no twin and says: none op=... experiment=...
// Operators of the built-in target state the record {"like": "builtin"} and offer the fused path alone.
#pragma once

#include "kit/target.h"

namespace fusediff::planted {

#if defined(PLANTED_CLEAN)
#define PLANTED_SUFFIX "_clean"
inline constexpr bool kFaulty = false;
#else
#define PLANTED_SUFFIX ""
inline constexpr bool kFaulty = true;
#endif

// The record of a built-in operator whose fused path is planted.
#define PLANTED_LIKE_BUILTIN(name) R"({"name": ")" name R"(", "like": "builtin", "paths": ["fused"]})"

// Exports planted_<name>; nothing where the file is one part of the library `planted`.
#if defined(PLANTED_PART)
#define PLANTED_TARGET(name, ...) static_assert(true)
#else
#define PLANTED_TARGET(name, ...) FUSEDIFF_KIT_TARGET("planted_" name PLANTED_SUFFIX, "1", __VA_ARGS__)
#endif

// As above; each open() makes a Context, which call.context<Context>() reaches.
#define PLANTED_TARGET_WITH_CONTEXT(Context, name, ...) \
  FUSEDIFF_KIT_TARGET_WITH_CONTEXT(Context, "planted_" name PLANTED_SUFFIX, "1", __VA_ARGS__)

}  // namespace fusediff::planted
