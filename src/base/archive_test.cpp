#include "base/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <map>

#include "base/files.h"
#include "base/rng.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::uint64_t kMaxText = 1 << 22;

// One entry of a tar as a stranger may write it: whatever the header says.
struct Entry {
  std::string name;
  std::string body = {};
  char type = '0';
  std::string link = {};
  std::uint64_t says = ~std::uint64_t{0};  // its size; ~0: the body's
};

std::string tar_of(const std::vector<Entry>& entries) {
  std::string tar;
  for (const Entry& entry : entries) {
    char header[512] = {};
    std::memcpy(header, entry.name.data(), std::min<std::size_t>(entry.name.size(), 100));
    std::memcpy(header + 157, entry.link.data(), std::min<std::size_t>(entry.link.size(), 100));
    std::strcpy(header + 100, "0000644");
    std::strcpy(header + 108, "0000000");
    std::strcpy(header + 116, "0000000");
    const std::uint64_t size = entry.says == ~std::uint64_t{0} ? entry.body.size() : entry.says;
    std::snprintf(header + 124, 12, "%011llo", static_cast<unsigned long long>(size));
    std::strcpy(header + 136, "00000000000");
    header[156] = entry.type;
    std::memcpy(header + 257, "ustar\00000", 8);
    std::memset(header + 148, ' ', 8);
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    std::snprintf(header + 148, 8, "%06o", sum);
    tar.append(header, 512).append(entry.body).append((512 - entry.body.size() % 512) % 512, '\0');
  }
  return tar.append(1024, '\0');
}

std::string pax(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  std::size_t length = rest.size();
  for (int i = 0; i < 3; ++i) length = rest.size() + std::to_string(length).size();
  return std::to_string(length) + rest;
}

class Archive : public testing::Test {
 protected:
  Archive() : root_(fs::path(testing::TempDir()) / ("fusediff_archive_" + std::to_string(::getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_ / "in");
  }
  ~Archive() override { fs::remove_all(root_); }

  fs::path gzipped(const std::string& bytes) const {
    const fs::path path = root_ / "made.tar.gz";
    gzFile file = ::gzopen(path.c_str(), "wb");
    EXPECT_EQ(::gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())), static_cast<int>(bytes.size()));
    ::gzclose(file);
    return path;
  }
  Status extracted(const fs::path& archive, const ArchiveLimits& limits = {}) const {
    fs::remove_all(root_ / "out");
    fs::create_directories(root_ / "out" / "inner");
    const Status status = extract_archive(archive, root_ / "out" / "inner", limits);
    // Whatever came of it, nothing is beside the folder.
    std::size_t beside = 0;
    for (const auto& entry : fs::directory_iterator(root_ / "out")) beside += entry.path().filename() != "inner";
    EXPECT_EQ(beside, 0u);
    return status;
  }
  std::string refusal(const std::vector<Entry>& entries, const ArchiveLimits& limits = {}) const {
    const Status status = extracted(gzipped(tar_of(entries)), limits);
    EXPECT_FALSE(status.ok());
    if (status.ok()) return "";
    EXPECT_EQ(status.error().what.find('\n'), std::string::npos);
    return status.error().what;
  }
  // Every file below `inner`.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    const fs::path inner = root_ / "out" / "inner";
    for (const auto& entry : fs::recursive_directory_iterator(inner)) {
      if (entry.is_regular_file()) all[fs::relative(entry.path(), inner).string()] = *read_file(entry.path(), kMaxText);
    }
    return all;
  }
  std::vector<PackedFile> sample() const {
    EXPECT_TRUE(write_file(root_ / "in" / "a", "first").ok());
    EXPECT_TRUE(write_file(root_ / "in" / "b", std::string(100000, 'x')).ok());
    EXPECT_TRUE(write_file(root_ / "in" / "c", "").ok());
    return {{"top/b", root_ / "in" / "b"}, {"top/a", root_ / "in" / "a"}, {"top/c", root_ / "in" / "c"}};
  }

  const fs::path root_;
};

TEST_F(Archive, WhatIsPackedComesBack) {
  ASSERT_TRUE(write_archive(root_ / "x.tar.gz", sample()).ok());
  const Status status = extracted(root_ / "x.tar.gz");
  ASSERT_TRUE(status.ok()) << status.error().what;
  EXPECT_EQ(files(), (std::map<std::string, std::string>{
                         {"top/a", "first"}, {"top/b", std::string(100000, 'x')}, {"top/c", ""}}));
}

TEST_F(Archive, TheSameFilesGiveTheSameBytesWhateverTheirOrderAndAge) {
  std::vector<PackedFile> files = sample();
  ASSERT_TRUE(write_archive(root_ / "x.tar.gz", files).ok());
  std::swap(files[0], files[2]);
  fs::last_write_time(root_ / "in" / "a", fs::file_time_type::clock::now() - std::chrono::hours(100));
  fs::permissions(root_ / "in" / "a", fs::perms::owner_all);
  ASSERT_TRUE(write_archive(root_ / "y.tar.gz", files).ok());
  const std::string bytes = *read_file(root_ / "x.tar.gz", kMaxText);
  EXPECT_EQ(bytes, *read_file(root_ / "y.tar.gz", kMaxText));
  EXPECT_EQ(bytes.substr(3, 5), std::string(5, '\0')) << "flags and time in gzip's header";
}

TEST_F(Archive, AWriteThatFailsLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(write_file(root_ / "x.tar.gz", "old").ok());
  std::vector<PackedFile> files = sample();
  files.push_back({"top/d", root_ / "in" / "absent"});
  EXPECT_THAT(write_archive(root_ / "x.tar.gz", files).error().what, HasSubstr("absent: cannot open"));
  EXPECT_EQ(*read_file(root_ / "x.tar.gz", kMaxText), "old");
  fs::create_symlink(root_ / "in" / "a", root_ / "in" / "link");
  EXPECT_FALSE(write_archive(root_ / "x.tar.gz", std::vector<PackedFile>{{"top/l", root_ / "in" / "link"}}).ok());
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(root_)) count += entry.is_regular_file();
  EXPECT_EQ(count, 1u);
}

TEST_F(Archive, NamesThatLeadElsewhereAreRefused) {
  EXPECT_THAT(refusal({{"/etc/x", "a"}}), HasSubstr("absolute"));
  EXPECT_THAT(refusal({{"../x", "a"}}), HasSubstr("leads out"));
  EXPECT_THAT(refusal({{"a/b/../../../x", "a"}}), HasSubstr("leads out"));
  EXPECT_THAT(refusal({{"a\\..\\x", "a"}}), HasSubstr("backslash"));
  EXPECT_THAT(refusal({{"a\nb", "a"}}), HasSubstr("printable ASCII"));
  EXPECT_THAT(refusal({{"a\xff\xfe", "a"}}), HasSubstr("ASCII"));
  EXPECT_THAT(refusal({{".", "a"}}), HasSubstr("without a name"));
  EXPECT_THAT(refusal({{"pax", pax("path", "../../x"), 'x'}, {"harmless", "a"}}), HasSubstr("leads out"));
  EXPECT_THAT(refusal({{"pax", pax("path", std::string(5000, 'n')), 'x'}, {"harmless", "a"}}), HasSubstr("5000 bytes"));
  EXPECT_THAT(refusal({{"L", std::string(5000, 'n'), 'L'}, {"harmless", "a"}}), HasSubstr("bytes; at most"));
  EXPECT_THAT(refusal({{"a/b/c/d/e/f/g/h/i", "a"}}), HasSubstr("too deep"));
}

TEST_F(Archive, ANameWithAnotherBehindAZeroIsNotThatOther) {
  (void)extracted(gzipped(tar_of({{"pax", pax("path", std::string("good\0../../evil", 15)), 'x'}, {"n", "a"}})));
  for (const auto& [name, bytes] : files()) EXPECT_EQ(name.find("evil"), std::string::npos);
}

TEST_F(Archive, LinksAndDevicesAreRefused) {
  EXPECT_THAT(refusal({{"a", "", '2', "/etc/passwd"}}), HasSubstr("is a link"));
  EXPECT_THAT(refusal({{"b", "x"}, {"a", "", '1', "b"}}), HasSubstr("is a link"));
  for (const char type : {'3', '4', '6'}) EXPECT_THAT(refusal({{"a", "", type}}), HasSubstr("a device"));
  // Through a link of its own.
  EXPECT_THAT(refusal({{"a", "", '2', "/tmp"}, {"a/x", "y"}}), HasSubstr("is a link"));
}

TEST_F(Archive, ANameMayStandOnce) {
  EXPECT_THAT(refusal({{"t/a", "1"}, {"t/a", "2"}}), HasSubstr("twice"));
  EXPECT_THAT(refusal({{"t/a", "1"}, {"./t//a", "2"}}), HasSubstr("twice"));
  EXPECT_THAT(refusal({{"t", "1"}, {"t/a", "2"}}), HasSubstr("lies in a file"));
  EXPECT_THAT(refusal({{"t/a", "1"}, {"t", "2"}}), HasSubstr("twice"));
}

TEST_F(Archive, LimitsAreLookedAtBeforeAnythingIsMade) {
  ArchiveLimits limits;
  limits.total_bytes = 1000;
  EXPECT_THAT(refusal({{"a", "x", '0', "", std::uint64_t{1} << 32}}, limits), HasSubstr("above 1000 bytes"));
  EXPECT_TRUE(files().empty());
  EXPECT_THAT(refusal({{"a", std::string(600, 'x')}, {"b", std::string(600, 'x')}}, limits), HasSubstr("\"b\" brings"));
  limits.entries = 2;
  EXPECT_THAT(refusal({{"a", ""}, {"b", ""}, {"c", ""}}, limits), HasSubstr("more than 2 entries"));
  limits = {};
  limits.ratio_from = 1 << 16;
  limits.ratio = 100;
  EXPECT_THAT(refusal({{"a", std::string(1 << 21, '\0')}}, limits), HasSubstr("more than 100 times"));
  EXPECT_TRUE(extracted(gzipped(tar_of({{"a", std::string(1 << 21, '\0')}}))).ok());
}

TEST_F(Archive, HeadersThatGoOnAndOnAreRefused) {
  std::vector<Entry> many(20000, Entry{"L", "name", 'L'});
  many.push_back({"a", "x"});
  EXPECT_FALSE(refusal(many).empty());
  std::vector<Entry> paxes(20000, Entry{"x", pax("comment", "c"), 'x'});
  paxes.push_back({"a", "x"});
  EXPECT_FALSE(refusal(paxes).empty());
  EXPECT_FALSE(refusal({{"x", "", 'x', "", std::uint64_t{1} << 33}, {"a", "x"}}).empty());
}

TEST_F(Archive, WhatIsNoGzippedTarIsRefused) {
  const auto refused = [&](const fs::path& path) {
    const Status status = extracted(path);
    return status.ok() ? std::string() : status.error().what;
  };
  ASSERT_TRUE(write_file(root_ / "text", "hello").ok());
  EXPECT_THAT(refused(root_ / "text"), HasSubstr("is not gzip"));
  EXPECT_THAT(refused(gzipped("no tar at all, but long enough")), HasSubstr("is no whole tar archive"));
  EXPECT_THAT(refused(gzipped(std::string("PK\3\4", 4) + std::string(2000, 'x'))), HasSubstr("is no whole tar"));
  EXPECT_FALSE(refused(gzipped("")).empty());
  EXPECT_THAT(refused(root_ / "absent"), HasSubstr("cannot open"));
  EXPECT_THAT(refused(root_), HasSubstr("is no regular file"));
  // gzip within gzip is no tar.
  const std::string once = *read_file(gzipped(tar_of({{"a", "x"}})), kMaxText);
  EXPECT_FALSE(refused(gzipped(once)).empty());
  EXPECT_THAT(refused(gzipped(tar_of({{"a", "x"}}) + std::string(4 << 20, 'y'))), HasSubstr("behind the end"));
}

TEST_F(Archive, EveryCutAndEveryChangedByteOfTheCompressedFileIsSeen) {
  ASSERT_TRUE(write_archive(root_ / "x.tar.gz", sample()).ok());
  const std::string good = *read_file(root_ / "x.tar.gz", kMaxText);
  for (std::size_t size = 0; size < good.size(); ++size) {
    ASSERT_TRUE(write_file(root_ / "y.tar.gz", good.substr(0, size)).ok());
    EXPECT_FALSE(extracted(root_ / "y.tar.gz").ok()) << "cut at " << size << " of " << good.size();
  }
  for (std::size_t i = 10; i < good.size(); ++i) {  // before: gzip's header, of which a flag or the time may differ
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    ASSERT_TRUE(write_file(root_ / "y.tar.gz", bad).ok());
    if (extracted(root_ / "y.tar.gz").ok()) {
      EXPECT_EQ(files().at("top/a"), "first") << i;
      EXPECT_EQ(files().at("top/b"), std::string(100000, 'x')) << i;
    }
  }
}

TEST_F(Archive, ThousandsOfDamagedTarsAreReadOrRefusedAndNothingElse) {
  const std::string good = tar_of({{"pax", pax("path", "top/long") + pax("mtime", "1.5"), 'x'},
                                   {"top/a", "first"},
                                   {"L", "top/longer", 'L'},
                                   {"top/b", std::string(700, 'y')},
                                   {"top/", "", '5'}});
  Rng rng(7);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (std::uint64_t n = 1 + rng.below(4); n > 0; --n)
      bad[static_cast<std::size_t>(rng.below(bad.size()))] = static_cast<char>(rng.below(256));
    const Status status = extracted(gzipped(bad));
    if (status.ok()) continue;
    ++refused;
    EXPECT_EQ(status.error().what.find('\n'), std::string::npos);
  }
  EXPECT_GT(refused, 300);
  EXPECT_LT(refused, 3000);
}

}  // namespace
}  // namespace fusediff
