#include "target/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "target/shared_object.h"

namespace fusediff {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::filesystem::path kFixtures = FIXTURE_DIRECTORY;

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class TargetLoaderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("fusediff_loader_" + std::to_string(::getpid()) + "_" +
                                                        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path written(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  std::string error_of(const std::filesystem::path& name) {
    const auto loaded = loader_.load(name.string());
    EXPECT_FALSE(loaded.ok()) << name;
    if (loaded.ok()) return "";
    EXPECT_EQ(loaded.error().blame, Blame::kUser);
    EXPECT_THAT(loaded.error().what, Not(HasSubstr("\n")));
    return loaded.error().what;
  }

  std::filesystem::path folder_;
  TargetLoader loader_{{kFixtures}};
};

TEST_F(TargetLoaderTest, LoadsByNameAndByPathOnce) {
  const auto by_name = loader_.load("good");
  ASSERT_TRUE(by_name.ok()) << by_name.error().what;
  EXPECT_EQ((*by_name)->name, "fixture");
  EXPECT_EQ((*by_name)->version, "1");
  ASSERT_NE((*by_name)->schema.find("copy"), nullptr);
  const auto by_path = loader_.load((kFixtures / "good.so").string());
  ASSERT_TRUE(by_path.ok());
  EXPECT_EQ(*by_path, *by_name);
  const auto other_options = loader_.load("good", {.options = "device=1", .isolate = false, .environment = {}});
  ASSERT_TRUE(other_options.ok());
  EXPECT_NE(*other_options, *by_name);
  EXPECT_EQ((*other_options)->options, "device=1");
  EXPECT_EQ((*other_options)->abi, (*by_name)->abi);
}

TEST_F(TargetLoaderTest, NamesWhatIsThere) {
  EXPECT_THAT(loader_.available(), testing::IsSupersetOf({"good", "no_symbol", "small_struct"}));
  EXPECT_THAT(error_of("godo"), AllOf(HasSubstr("'godo'"), HasSubstr("'good'")));
  EXPECT_THAT(error_of("zzzzzzzzzzzz"), HasSubstr("there are bad_schema, good"));
  EXPECT_THAT(error_of("/nowhere/x.so"), HasSubstr("/nowhere/x.so: there is no such library"));
  EXPECT_THAT(error_of(""), HasSubstr("no name"));
  TargetLoader nowhere({folder_ / "missing"});
  EXPECT_THAT(nowhere.load("good").error().what, HasSubstr("no folder of targets holds any"));
}

TEST_F(TargetLoaderTest, RefusesEachBadLibraryInOneLine) {
  EXPECT_THAT(error_of("no_symbol"), HasSubstr("does not export fusediff_target()"));
  EXPECT_THAT(error_of("null_table"), HasSubstr("fusediff_target() returned NULL"));
  EXPECT_THAT(error_of("newer_version"), AllOf(HasSubstr("ABI version 7"), HasSubstr("reads version 1")));
  EXPECT_THAT(error_of("small_struct"), HasSubstr("struct_size is 40"));
  EXPECT_THAT(error_of("no_run"), HasSubstr("fusediff_target_v1.run is NULL"));
  EXPECT_THAT(error_of("half_memory"), HasSubstr("all four or none, 1 of them"));
  EXPECT_THAT(error_of("null_schema"), HasSubstr("schema() returned NULL"));
  EXPECT_THAT(error_of("bad_schema"), HasSubstr("bad_schema.so: schema: "));
}

TEST_F(TargetLoaderTest, LikeLoadsTheOtherTarget) {
  const auto like = loader_.load("like_good");
  ASSERT_TRUE(like.ok()) << like.error().what;
  ASSERT_NE((*like)->schema.find("copy"), nullptr);
  EXPECT_EQ((*like)->schema.find("copy")->outputs.size(), 1u);
  EXPECT_THAT(error_of("like_nobody"), AllOf(HasSubstr("like_nobody.so: schema: "), HasSubstr("no target 'nobody'")));
  EXPECT_THAT(error_of("like_itself"), HasSubstr("circle"));
}

TEST_F(TargetLoaderTest, RefusesFilesThatAreNoLibrary) {
  EXPECT_THAT(error_of(written("empty.so", "")), HasSubstr("is empty"));
  EXPECT_THAT(error_of(written("text.so", "hello")), HasSubstr("no ELF header"));
  EXPECT_THAT(error_of(written("magic.so", "\177ELF")), HasSubstr("cut off"));
  EXPECT_THAT(error_of(written("noise.so", "\177ELF" + std::string(4096, '\x77'))), HasSubstr("noise.so: is "));
  EXPECT_THAT(error_of("/proc/self/exe"), Not(HasSubstr("ABI")));
  std::filesystem::create_directories(folder_ / "folder.so");
  EXPECT_THAT(error_of(folder_ / "folder.so"), HasSubstr("is a folder"));
}

TEST_F(TargetLoaderTest, RefusesAnotherMachine) {
  std::string bytes = bytes_of(kFixtures / "good.so");
  ASSERT_GT(bytes.size(), 64u);
  bytes[18] = '\x15';  // e_machine: ppc64
  bytes[19] = 0;
  EXPECT_THAT(error_of(written("other.so", bytes)), HasSubstr("is built for ppc64, this machine is"));
  bytes = bytes_of(kFixtures / "good.so");
  bytes[4] = 1;  // EI_CLASS: 32 bits
  EXPECT_THAT(error_of(written("narrow.so", bytes)), HasSubstr("not a 64-bit library"));
}

TEST_F(TargetLoaderTest, RefusesEveryTruncation) {
  const std::string bytes = bytes_of(kFixtures / "good.so");
  ASSERT_GT(bytes.size(), 4096u);
  for (std::size_t keep = 0; keep < bytes.size(); keep += 1 + bytes.size() / 97) {
    const auto status = check_shared_object(written("cut.so", bytes.substr(0, keep)));
    EXPECT_FALSE(status.ok()) << keep << " of " << bytes.size() << " bytes";
  }
  EXPECT_TRUE(check_shared_object(written("whole.so", bytes)).ok());
}

TEST_F(TargetLoaderTest, DamagedHeadersNeverCrashTheCheck) {
  const std::string bytes = bytes_of(kFixtures / "good.so");
  for (std::size_t at = 0; at < 1024; ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (at % 2 == 0 ? '\xff' : '\x80'));
    const auto status = check_shared_object(written("damaged.so", damaged));
    if (status.ok()) continue;
    EXPECT_THAT(status.error().what, HasSubstr("damaged.so: "));
  }
}

}  // namespace
}  // namespace fusediff
