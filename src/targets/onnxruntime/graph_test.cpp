#include "onnxruntime/graph.h"

#include <gtest/gtest.h>

#include <string>

#include "kit/failure.h"
#include "onnxruntime/context.h"

namespace fusediff::onnxruntime {
namespace {

using std::string_literals::operator""s;

TEST(GraphTest, WritesTheWireFormat) {
  Graph graph;
  graph.input("x", {"R"});
  graph.output("y", {"R"});
  graph.scalar("two", 2);
  graph.axes("last", {-1});
  graph.node("Mul", {"x", "two"}, "y", {{"axes", {3}}}, "keepdims", 1);
  const std::string axes = "\x0a\x04"s + "axes" + "\x40\x03\xa0\x01\x07"s;
  const std::string keepdims = "\x0a\x08"s + "keepdims" + "\x18\x01\xa0\x01\x02"s;
  const std::string node = "\x0a\x01x\x0a\x03two\x12\x01y\x22\x03Mul\x2a\x0b"s + axes + "\x2a\x0f"s + keepdims;
  const std::string scalar = "\x10\x01\x42\x03two\x4a\x04\x00\x00\x00\x40"s;
  const std::string list = "\x08\x01\x10\x07\x42\x04last\x4a\x08\xff\xff\xff\xff\xff\xff\xff\xff"s;
  const std::string type = "\x12\x0b\x0a\x09\x08\x01\x12\x05\x0a\x03\x12\x01R"s;
  const std::string whole = "\x0a"s + static_cast<char>(node.size()) + node + "\x12\x08"s + "fusediff" + "\x2a"s +
                            static_cast<char>(scalar.size()) + scalar + "\x2a"s + static_cast<char>(list.size()) +
                            list + "\x5a\x10\x0a\x01x"s + type + "\x62\x10\x0a\x01y"s + type;
  ASSERT_LT(whole.size(), 256u);
  EXPECT_EQ(graph.bytes(), "\x08\x07\x12\x08"s + "fusediff" + "\x3a"s +
                               static_cast<char>(0x80 | (whole.size() & 0x7f)) + static_cast<char>(whole.size() >> 7) +
                               whole + "\x42\x04\x0a\x00\x10\x0d"s);
}

std::string error_of(std::string_view options) {
  try {
    parse_options(options);
  } catch (const kit::Failure& failure) {
    EXPECT_EQ(failure.status(), FUSEDIFF_REJECTED);
    return failure.what();
  }
  return "none";
}

TEST(OptionsTest, Words) {
  const Options none = parse_options("");
  EXPECT_EQ(none.level, kLevelAll);
  EXPECT_EQ(none.threads, 1);
  const Options all = parse_options("library=/a/b=c.so,level=extended,threads=3");
  EXPECT_EQ(all.library, "/a/b=c.so");
  EXPECT_EQ(all.level, kLevelExtended);
  EXPECT_EQ(all.threads, 3);
  EXPECT_EQ(error_of("level=most"), "option level is \"most\", it must be one of off, basic, extended, all");
  EXPECT_EQ(error_of("threads=0"), "option threads is \"0\", it must be a number from 1 to 256");
  EXPECT_EQ(error_of("fast"), "option \"fast\" must be NAME=VALUE");
  EXPECT_EQ(error_of("fast=1"), "unknown option \"fast\": there are library, level, threads");
}

TEST(LibraryTest, WhatIsNoLibraryIsOneLine) {
  void* context = nullptr;
  EXPECT_EQ(fusediff_target()->open("library=/nowhere/libonnxruntime.so", &context), FUSEDIFF_FAILED);
  EXPECT_NE(std::string(fusediff_target()->last_error()).find("libonnxruntime cannot be loaded: /nowhere"),
            std::string::npos);
  EXPECT_EQ(fusediff_target()->open("library=libm.so.6", &context), FUSEDIFF_FAILED);
  EXPECT_STREQ(fusediff_target()->last_error(), "libm.so.6 is no libonnxruntime: it has no OrtGetApiBase");
}

}  // namespace
}  // namespace fusediff::onnxruntime
