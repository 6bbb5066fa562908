#include "import/destination.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "import/made_test.h"

namespace fusediff {
namespace {

using testing::HasSubstr;

TEST(FileNames, EqualNamesGetNumbersAndNoneIsHandedOutTwice) {
  FileNames names;
  EXPECT_EQ(names.take("a_2"), "a_2");
  EXPECT_EQ(names.take("a"), "a");
  EXPECT_EQ(names.take("a"), "a_3");
  EXPECT_EQ(names.take("a"), "a_4");
  EXPECT_EQ(names.take("a_3"), "a_3_2");
  EXPECT_EQ(names.take("../b"), "_._b");
}

// Trying each number anew would take twenty billion comparisons.
TEST(FileNames, TwoHundredThousandEqualNames) {
  FileNames names;
  std::string last;
  for (int i = 0; i < 200000; ++i) last = names.take("row");
  EXPECT_EQ(last, "row_200000");
}

class Destinations : public Imports {};

TEST_F(Destinations, OtherContentIsNotWrittenOver) {
  const auto file = put("there.json", "one");
  EXPECT_TRUE(may_write(folder_ / "absent.json", "one").ok());
  EXPECT_TRUE(may_write(file, "one").ok());
  for (const char* other : {"two", "three", ""}) {
    const Status status = may_write(file, other);
    ASSERT_FALSE(status.ok()) << other;
    EXPECT_THAT(status.error().what, HasSubstr(file.string() + ": is there already"));
  }
  std::filesystem::create_symlink(file, folder_ / "link.json");
  ASSERT_EQ(::mkfifo((folder_ / "pipe.json").c_str(), 0600), 0);
  EXPECT_FALSE(may_write(folder_ / "link.json", "one").ok());
  EXPECT_FALSE(may_write(folder_ / "pipe.json", "one").ok());
  EXPECT_FALSE(may_write(folder_, "one").ok());
}

TEST_F(Destinations, MadeFilesAreComparedToTheLastByte) {
  const std::string large(3 << 20, 'x');
  const auto there = put("there", large), same = put("same", large), other = put("other", large.substr(1) + "y"),
             shorter = put("shorter", large.substr(1));
  EXPECT_TRUE(may_write(there, same, MadeFile::kWhole).ok());
  EXPECT_TRUE(may_write(there, other, MadeFile::kSizeOnly).ok());
  EXPECT_FALSE(may_write(there, other, MadeFile::kWhole).ok());
  EXPECT_FALSE(may_write(there, shorter, MadeFile::kSizeOnly).ok());
  EXPECT_TRUE(may_write(folder_ / "absent", other, MadeFile::kWhole).ok());
}

TEST_F(Destinations, ManyFilesAreWrittenOrNone) {
  const auto out = folder_ / "out";
  const std::vector<NewFile> files = {{out / "a.json", "1"}, {out / "b.json", ""}, {out / "c.json", "33"}};
  ASSERT_TRUE(write_all(out, files).ok());
  for (const NewFile& file : files) EXPECT_EQ(*read_file(file.place, 10), file.text);
  const auto count = [&] {
    return std::distance(std::filesystem::directory_iterator(out), std::filesystem::directory_iterator());
  };
  EXPECT_EQ(count(), 3);
  const std::vector<NewFile> wrong = {{out / "d.json", "4"}, {out / std::string(300, 'n'), "5"}};
  const Status status = write_all(out, wrong);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().what, HasSubstr("nnn: cannot write: "));
  EXPECT_EQ(count(), 3);
}

}  // namespace
}  // namespace fusediff
