#include "kit/target.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "kit/rig.h"

namespace {

using namespace fusediff::kit;

struct Counter {
  explicit Counter(std::string_view options) : from(options.empty() ? 0 : 100) {
    require(options.empty() || options == "hundred", "unknown option ", options, ", known is: hundred");
  }
  int from;
  std::atomic<int> calls{0};
};

void twice(const Call& call) {
  require(call.integer("fault") != 1, "fault is ", call.integer("fault"), ", which is not legal");
  if (call.integer("fault") == 2) {
    throw std::runtime_error("something of the standard library");
  }
  if (call.integer("fault") == 3) {
    throw 3;
  }
  float* scratch = call.workspace().take<float>(call.input("x").count());
  for_each_row<float>(std::array{call.output("y"), call.input("x")}, [&](const auto& row) {
    load(row[1], scratch);
    for (int64_t i = 0; i < row[0].shape[0]; ++i) {
      scratch[i] *= 2;
    }
    store(row[0], scratch);
  });
  ++call.context<Counter>().calls;
}

size_t twice_workspace(const Call& call) {
  Carver carver;
  carver.take<float>(call.input("x").count());
  return carver.bytes();
}

const Operator kTwice{"twice", R"({"name": "twice"})", {{"fused", twice, twice_workspace}}};
const Operator kOther{"other", R"({"name": "other"})", {{"unfused", twice}}};

Rig twice_rig(int64_t fault) {
  Rig rig("twice");
  RigTensor& x = rig.input("x", FUSEDIFF_F32, {2, 3});
  for (int64_t i = 0; i < 6; ++i) {
    x.put_number(i, static_cast<double>(i));
  }
  rig.output("y", FUSEDIFF_F32, {2, 3}).lay_out(2);
  rig.integer("fault", fault);
  return rig;
}

TEST(TargetTest, RunsAnOperatorByName) {
  Rig rig = twice_rig(0);
  ASSERT_EQ(rig.run(*fusediff_target(), "fused"), FUSEDIFF_OK) << rig.error();
  EXPECT_EQ(rig.damage(), "");
  EXPECT_EQ(rig.output("y").number(5), 10.0);
}

TEST(TargetTest, JoinsTheSchemaRecords) {
  EXPECT_STREQ(fusediff_target()->schema(),
               "{\"fusediff_schema\": 1, \"threads\": \"shared_context\", \"operators\": [\n"
               "{\"name\": \"twice\"},\n{\"name\": \"other\"}\n]}\n");
  EXPECT_EQ(fusediff_target(), fusediff_target());
}

TEST(TargetTest, SaysWhatIsUnknown) {
  Rig rig = twice_rig(0);
  EXPECT_EQ(rig.run(*fusediff_target(), "unfused"), FUSEDIFF_UNSUPPORTED);
  EXPECT_EQ(rig.error(), "operator twice has no path unfused");
  Rig nothing("nothing");
  EXPECT_EQ(nothing.run(*fusediff_target(), "fused"), FUSEDIFF_UNSUPPORTED);
  EXPECT_EQ(nothing.error(), "no operator nothing");
}

TEST(TargetTest, TurnsExceptionsIntoStatuses) {
  Rig rejected = twice_rig(1);
  EXPECT_EQ(rejected.run(*fusediff_target(), "fused"), FUSEDIFF_REJECTED);
  EXPECT_EQ(rejected.error(), "fault is 1, which is not legal");
  Rig failed = twice_rig(2);
  EXPECT_EQ(failed.run(*fusediff_target(), "fused"), FUSEDIFF_FAILED);
  EXPECT_EQ(failed.error(), "something of the standard library");
  Rig odd = twice_rig(3);
  EXPECT_EQ(odd.run(*fusediff_target(), "fused"), FUSEDIFF_FAILED);
  EXPECT_EQ(odd.error(), "an exception of unknown type");
}

TEST(TargetTest, ErrorTextBelongsToTheThread) {
  Rig rejected = twice_rig(1);
  rejected.run(*fusediff_target(), "fused");
  std::string elsewhere = "not read";
  std::thread([&] { elsewhere = fusediff_target()->last_error(); }).join();
  EXPECT_EQ(elsewhere, "");
  EXPECT_STREQ(fusediff_target()->last_error(), "fault is 1, which is not legal");
}

TEST(TargetTest, GivesEveryOpenItsContextAndOptions) {
  const fusediff_target_v1* target = fusediff_target();
  void* first = nullptr;
  void* second = nullptr;
  ASSERT_EQ(target->open("", &first), FUSEDIFF_OK);
  ASSERT_EQ(target->open("hundred", &second), FUSEDIFF_OK);
  EXPECT_NE(first, second);
  EXPECT_EQ(static_cast<Counter*>(second)->from, 100);
  target->close(first);
  target->close(second);
  EXPECT_EQ(target->open("ten", &first), FUSEDIFF_REJECTED);
  EXPECT_STREQ(target->last_error(), "unknown option ten, known is: hundred");
}

}  // namespace

FUSEDIFF_KIT_TARGET_WITH_CONTEXT(Counter, "test", "1.2.3", kTwice, kOther)
