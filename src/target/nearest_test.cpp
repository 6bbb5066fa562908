#include "target/nearest.h"

#include <gtest/gtest.h>

namespace fusediff {
namespace {

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("builtin", "builtin"), 0u);
  EXPECT_EQ(edit_distance("bulitin", "builtin"), 1u);  // a swap of neighbours is one edit
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Nearest, NamesTheNearestOrNone) {
  const std::vector<std::string> words = {"builtin", "planted", "onednn"};
  EXPECT_EQ(nearest_word("bultin", words), "builtin");
  EXPECT_EQ(nearest_word("plantd", words), "planted");
  EXPECT_EQ(nearest_word("zebra", words), "");
  EXPECT_EQ(nearest_word("x", {}), "");
}

}  // namespace
}  // namespace fusediff
