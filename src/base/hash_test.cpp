#include "base/hash.h"

#include <gtest/gtest.h>

namespace fusediff {
namespace {

TEST(Hash, IsTheCanonicalXxh3OfTheBytes) {
  // The value that `xxhsum -H2` prints for an empty file.
  EXPECT_EQ(hash128(std::string_view()).hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_NE(hash128("a"), hash128("b"));
}

}  // namespace
}  // namespace fusediff
