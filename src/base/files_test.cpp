#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fusediff {
namespace {

using ::testing::HasSubstr;

std::filesystem::path scratch(const char* name) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("fusediff_files_test_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  return folder / name;
}

TEST(Files, WrittenBytesAreReadBack) {
  const std::string bytes("a\0b\n", 4);
  ASSERT_TRUE(write_file(scratch("plain"), bytes).ok());
  const Result<std::string> read = read_file(scratch("plain"), 4);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, bytes);
}

TEST(Files, ErrorsNameThePathAndWhatIsWrong) {
  EXPECT_THAT(read_file(scratch("absent"), 10).error().what, HasSubstr("absent: cannot open: No such file"));
  EXPECT_THAT(read_file(::testing::TempDir(), 10).error().what, HasSubstr("is a folder"));
  ASSERT_TRUE(write_file(scratch("long"), "12345").ok());
  EXPECT_THAT(read_file(scratch("long"), 4).error().what, HasSubstr("larger than 4 bytes"));
  EXPECT_FALSE(write_file(scratch("no/such/folder"), "x").ok());
}

TEST(Files, APipeIsNotWaitedFor) {
  std::filesystem::remove(scratch("pipe"));
  ASSERT_EQ(::mkfifo(scratch("pipe").c_str(), 0600), 0);
  EXPECT_THAT(read_file(scratch("pipe"), 10).error().what, HasSubstr("is a pipe"));
  EXPECT_FALSE(write_file(scratch("pipe"), "x").ok());
  EXPECT_TRUE(std::filesystem::is_fifo(scratch("pipe")));
}

TEST(Files, ALinkStaysALinkAndADeviceADevice) {
  std::filesystem::remove(scratch("link"));
  ASSERT_TRUE(write_file(scratch("behind"), "old").ok());
  std::filesystem::create_symlink(scratch("behind"), scratch("link"));
  ASSERT_TRUE(write_file(scratch("link"), "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(scratch("link")));
  EXPECT_EQ(*read_file(scratch("behind"), 10), "new");
  EXPECT_TRUE(write_file("/dev/null", "x").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(Files, AFullDiskKeepsTheOldFile) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_THAT(append_line("/dev/full", "x").error().what, HasSubstr("No space left"));
}

TEST(Files, AppendedLinesStandOneBelowTheOther) {
  std::filesystem::remove(scratch("lines"));
  ASSERT_TRUE(append_line(scratch("lines"), "one").ok());
  ASSERT_TRUE(append_line(scratch("lines"), "two").ok());
  EXPECT_EQ(*read_file(scratch("lines"), 100), "one\ntwo\n");
}

}  // namespace
}  // namespace fusediff
