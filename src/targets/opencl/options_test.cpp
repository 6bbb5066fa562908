#include "opencl/options.h"

#include <gtest/gtest.h>

#include <string>

#include "kit/failure.h"

namespace fusediff::opencl {
namespace {

std::string error_of(std::string_view text) {
  try {
    parse_options(text);
  } catch (const kit::Failure& failure) {
    EXPECT_EQ(failure.status(), FUSEDIFF_REJECTED);
    return failure.what();
  }
  return "none";
}

TEST(OptionsTest, Words) {
  const Options none = parse_options("");
  EXPECT_EQ(none.platform, 0);
  EXPECT_TRUE(none.contract);
  EXPECT_FALSE(none.queue_per_thread || none.shared_scratch || none.wait_each_step);
  const Options all = parse_options(
      "platform=2,device=1,queue=per_thread,scratch=shared,wait=step,contract=off,memory=buffer,kernels=a/b.cl,"
      "build=-D X=1 -cl-fast-relaxed-math");
  EXPECT_EQ(all.platform, 2);
  EXPECT_EQ(all.device, 1);
  EXPECT_TRUE(all.queue_per_thread && all.shared_scratch && all.wait_each_step);
  EXPECT_FALSE(all.contract);
  EXPECT_EQ(all.memory, Options::Memory::kBuffer);
  EXPECT_EQ(all.kernels, "a/b.cl");
  EXPECT_EQ(all.build, "-D X=1 -cl-fast-relaxed-math");
}

TEST(OptionsTest, Refusals) {
  EXPECT_EQ(error_of("queue=two"), "option queue is \"two\", it must be one of one, per_thread");
  EXPECT_EQ(error_of("device=-1"), "option device is \"-1\", it must be a number from 0 on");
  EXPECT_EQ(error_of("device=1x"), "option device is \"1x\", it must be a number from 0 on");
  EXPECT_EQ(error_of("fast"), "option \"fast\" must be NAME=VALUE");
  EXPECT_NE(error_of("fast=1").find("unknown option \"fast\": there are platform"), std::string::npos);
}

}  // namespace
}  // namespace fusediff::opencl
