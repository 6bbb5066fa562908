#include "model/quote.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fusediff {
namespace {

TEST(Quote, StaysOnOneLine) {
  EXPECT_EQ(quote("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(quote("a\nb\tc\rd"), "\"a\\nb\\tc\\rd\"");
  EXPECT_EQ(quote(std::string_view("\0\x1f", 2)), "\"\\u0000\\u001f\"");
  EXPECT_EQ(quote("\xff\xc3("), "\"\xEF\xBF\xBD\xEF\xBF\xBD(\"");
  EXPECT_EQ(quote("\xe2\x82"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(quote("\xe2\x82\xac"), "\"\xe2\x82\xac\"");
}

TEST(Quote, CutsWhatIsLong) {
  const std::string text = quote(std::string(1000, 'x'));
  EXPECT_LT(text.size(), 100u);
  EXPECT_TRUE(text.ends_with("x...\""));
}

TEST(Quote, NamesTheNearest) {
  const std::vector<std::string> legal = {"activation", "score", "bias"};
  EXPECT_EQ(not_one_of("scor", "a role", legal),
            "\"scor\" is not a role; did you mean \"score\"? legal: activation, score, bias");
  EXPECT_EQ(not_one_of("q", "a role", legal), "\"q\" is not a role; legal: activation, score, bias");
  EXPECT_EQ(not_one_of("q", "a dim", {}), "\"q\" is not a dim; legal: nothing");
  EXPECT_LT(not_one_of("q", "a dim", std::vector<std::string>(1000, "dim")).size(), 300u);
}

TEST(Printable, KeepsTextAndEscapesWhatSteersATerminal) {
  EXPECT_EQ(printable("gr\xC3\xA4"), "gr\xC3\xA4");
  EXPECT_EQ(printable("a\x1b[31m\nb\x7f"), "a\\u001b[31m\\nb\\u007f");
  EXPECT_EQ(printable("a\nb\r", /*lines=*/true), "a\nb\\r");
  EXPECT_EQ(printable("\xff!"), "\xEF\xBF\xBD!");
}

}  // namespace
}  // namespace fusediff
