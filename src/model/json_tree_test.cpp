#include "model/json_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fusediff {
namespace {

constexpr JsonLimits kLimits = {1 << 20, 32, 1 << 17};

std::string error_of(std::string_view json, const JsonLimits& limits = kLimits) {
  Result<JsonTree> tree = JsonTree::parse(json, limits);
  if (tree.ok()) return "";
  EXPECT_EQ(tree.error().what.find('\n'), std::string::npos);
  EXPECT_NE(tree.error().what, "");
  return tree.error().what;
}

TEST(JsonTree, KeepsOrderKindsAndText) {
  Result<JsonTree> tree = JsonTree::parse(R"({"b": [1, -2, 2.5, "x\u0041\n"], "a": {"t": true, "n": null}})", kLimits);
  ASSERT_TRUE(tree.ok()) << tree.error().what;
  const JsonTree moved = *std::move(tree);
  std::vector<std::string> keys;
  for (const JsonView member : moved.root()) keys.emplace_back(member.key());
  EXPECT_EQ(keys, (std::vector<std::string>{"b", "a"}));
  const JsonView list = *moved.root().find("b");
  ASSERT_EQ(list.size(), 4u);
  std::vector<std::string> found;
  for (const JsonView item : list) found.push_back(item.found());
  EXPECT_EQ(found, (std::vector<std::string>{"1", "-2", "2.5", "\"xA\\n\""}));
  EXPECT_EQ(moved.root().find("a")->find("n")->pointer(), "/a/n");
  EXPECT_FALSE(moved.root().find("c").has_value());
}

TEST(JsonTree, PointsByRfc6901OnOneLine) {
  Result<JsonTree> tree = JsonTree::parse(R"({"a/b~c": [0, {"x\ny": 1}]})", kLimits);
  ASSERT_TRUE(tree.ok());
  const JsonView list = *tree->root().find("a/b~c");
  std::string pointer;
  for (const JsonView item : list) pointer = item.pointer();
  EXPECT_EQ(pointer, "/a~1b~0c/1");
  EXPECT_EQ(tree->root().pointer(), "");
}

TEST(JsonTree, RefusesWhatIsNotJson) {
  for (const char* text : {"", "{", "[1,]", "{\"a\":}", "nul", "01", "NaN", "[1e400]", "\"\xff\"", "\"a\nb\"", "{} {}",
                           "{'a': 1}", "// c\n1", "\"\\ud800\"", "-", "+1", ".5", "Infinity", "[1 2]"}) {
    EXPECT_TRUE(error_of(text).starts_with("not JSON: ")) << text << " -> " << error_of(text);
  }
  EXPECT_NE(error_of("{\n  \"a\": x}").find("line 2"), std::string::npos);
}

TEST(JsonTree, RefusesRepeatedKeys) {
  EXPECT_EQ(error_of(R"({"p": [{"a": 1, "a": 2}]})"), "/p/0: the key \"a\" stands twice");
  EXPECT_NE(error_of(R"({"": 1, "": 2})"), "");
  std::string many = "{";
  for (int i = 0; i < 1000; ++i) many += "\"k" + std::to_string(i) + "\": 0, ";
  EXPECT_EQ(error_of(many + "\"z\": 0}"), "");
  EXPECT_NE(error_of(many + "\"k500\": 0}").find("\"k500\" stands twice"), std::string::npos);
}

TEST(JsonTree, HoldsItsLimits) {
  EXPECT_EQ(error_of(std::string(32, '[') + std::string(32, ']')), "");
  EXPECT_EQ(error_of(std::string(33, '[') + std::string(33, ']')), "nested deeper than 32");
  EXPECT_EQ(error_of(std::string(1000000, '[')), "nested deeper than 32");
  EXPECT_NE(error_of("[1, 2, 3]", {100, 32, 3}), "");
  EXPECT_EQ(error_of("[1, 2]", {100, 32, 3}), "");
  EXPECT_EQ(error_of("[1, 2]", {5, 32, 3}), "6 bytes of JSON; at most 5");
}

TEST(JsonTree, ReadsNumbersStrictly) {
  const auto read = [](const char* text) {
    Result<JsonTree> tree = JsonTree::parse(text, kLimits);
    JsonTrouble trouble;
    read_integer(tree->root(), trouble, "a size", 0, 100);
    return trouble.any() ? trouble.error().what : "";
  };
  EXPECT_EQ(read("100"), "");
  EXPECT_EQ(read("-1"), "-1 is not a size; an integer from 0 to 100 belongs here");
  for (const char* text : {"101", "1.0", "1e1", "\"1\"", "null", "true", "[]", "{}", "9223372036854775808",
                           "18446744073709551616", "99999999999999999999999", "-9223372036854775809"}) {
    EXPECT_NE(read(text), "") << text;
  }
}

TEST(JsonTree, FinishRefusesUnknownKeys) {
  Result<JsonTree> tree = JsonTree::parse(R"({"shape": 1, "dtyp": 2})", kLimits);
  JsonTrouble trouble;
  JsonObject object(tree->root(), trouble, "a tensor");
  object.find("shape");
  object.find("dtype");
  object.finish();
  ASSERT_TRUE(trouble.any());
  EXPECT_EQ(trouble.error().what, "/dtyp: \"dtyp\" is not a key here; did you mean \"dtype\"? legal: shape, dtype");
}

TEST(JsonTree, FirstTroubleStays) {
  JsonTrouble trouble;
  trouble.at(std::string("/a"), "one");
  trouble.at(std::string("/b"), "two");
  EXPECT_EQ(trouble.error().what, "/a: one");
}

}  // namespace
}  // namespace fusediff
