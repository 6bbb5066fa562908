#include "model/safetensors.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/rng.h"
#include "model/base64.h"

namespace fusediff {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

std::vector<StoredTensor> sample() {
  return {{"x", DType::kF32, {2, 1}, bytes_of("abcdefgh")},
          {"empty", DType::kI64, {0, 3}, {}},
          {"scalar", DType::kF8E4M3FN, {}, bytes_of("z")},
          {"b", DType::kBool, {3}, bytes_of(std::string_view("\0\1\0", 3))}};
}

std::string file_with(std::string header, std::string_view data) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 255);
  return file + header + std::string(data);
}

class SafetensorsFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("fusediff_safetensors_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path write(const std::string& content) const {
    std::ofstream(folder_ / "a.safetensors", std::ios::binary) << content;
    return folder_ / "a.safetensors";
  }
  std::filesystem::path folder_;
};

TEST_F(SafetensorsFile, ReadsBackWhatItWrote) {
  const std::string file = write_safetensors(sample());
  Result<std::vector<StoredTensor>> all = parse_safetensors(file);
  ASSERT_TRUE(all.ok()) << all.error().what;
  ASSERT_EQ(all->size(), 4u);
  const auto path = write(file);
  for (std::size_t i = 0; i < 4; ++i) {
    const StoredTensor expected = sample()[i];
    Result<StoredTensor> one = read_safetensor(path, expected.name);
    ASSERT_TRUE(one.ok()) << one.error().what;
    for (const StoredTensor* tensor : {&(*all)[i], &*one}) {
      EXPECT_EQ(tensor->name, expected.name);
      EXPECT_EQ(tensor->dtype, expected.dtype);
      EXPECT_EQ(tensor->shape, expected.shape);
      EXPECT_EQ(tensor->bytes, expected.bytes);
    }
  }
}

// The example of the format's documentation, with its own padding.
TEST(Safetensors, ReadsForeignFiles) {
  const std::string file = file_with(
      R"({"__metadata__": {"by": "hand"}, "t": {"dtype": "F16", "shape": [1, 2], "data_offsets": [2, 6]}}   )",
      "xxABCD");
  Result<std::vector<StoredTensor>> all = parse_safetensors(file);
  ASSERT_TRUE(all.ok()) << all.error().what;
  EXPECT_EQ((*all)[0].bytes, bytes_of("ABCD"));
}

TEST(Safetensors, AlignsTheHeader) {
  const std::string file = write_safetensors(sample());
  EXPECT_EQ((8 + static_cast<unsigned char>(file[0]) + 256 * static_cast<unsigned char>(file[1])) % 8, 0);
}

TEST(Safetensors, RefusesDamage) {
  const auto entry = [](std::string_view rest) {
    return file_with("{\"t\": {" + std::string(rest) + "}}", "12345678");
  };
  const std::string kFine = R"("dtype": "F32", "shape": [2], "data_offsets": [0, 8])";
  ASSERT_TRUE(parse_safetensors(entry(kFine)).ok());
  for (const std::string& file :
       {std::string(), std::string("1234567"), file_with("", ""), file_with("[]", ""), file_with("{", ""),
        std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), std::string("\x10\0\0\0\0\0\0\0{}", 10),
        entry(R"("dtype": "F33", "shape": [2], "data_offsets": [0, 8])"),
        entry(R"("dtype": "F32", "shape": [3], "data_offsets": [0, 8])"),
        entry(R"("dtype": "F32", "shape": [2], "data_offsets": [4, 12])"),
        entry(R"("dtype": "F32", "shape": [2], "data_offsets": [8, 0])"),
        entry(R"("dtype": "F32", "shape": [-2], "data_offsets": [0, 8])"),
        entry(R"("dtype": "F32", "shape": [4611686018427387905, 2], "data_offsets": [0, 8])"),
        entry(R"("dtype": "F32", "shape": [2], "data_offsets": [0, 18446744073709551615])"),
        entry(R"("dtype": "F32", "shape": [2], "data_offsets": [0, 1e3])"),
        entry(R"("dtype": "F32", "shape": [2], "data_offsets": [0])"),
        entry(R"("dtype": "F32", "data_offsets": [0, 8])"),
        entry(R"("dtype": "F32", "shape": [2], "data_offsets": [0, 8], "more": 1)")}) {
    Result<std::vector<StoredTensor>> all = parse_safetensors(file);
    ASSERT_FALSE(all.ok());
    EXPECT_EQ(all.error().what.find('\n'), std::string::npos);
  }
  const std::string whole = write_safetensors(sample());
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(parse_safetensors(whole.substr(0, size)).ok());
}

TEST_F(SafetensorsFile, NamesFileAndTensorInErrors) {
  EXPECT_NE(read_safetensor(folder_ / "none", "x").error().what.find("there is no such file"), std::string::npos);
  EXPECT_NE(read_safetensor(folder_, "x").error().what.find("not a regular file"), std::string::npos);
  const auto path = write(write_safetensors(sample()));
  EXPECT_NE(read_safetensor(path, "scalr").error().what.find("did you mean \"scalar\"?"), std::string::npos);
  std::filesystem::create_symlink(path, folder_ / "link");
  EXPECT_NE(read_safetensor(folder_ / "link", "x").error().what.find("not a regular file"), std::string::npos);
}

TEST(Base64, FollowsRfc4648) {
  const std::pair<const char*, const char*> kPairs[] = {{"", ""},
                                                        {"f", "Zg=="},
                                                        {"fo", "Zm8="},
                                                        {"foo", "Zm9v"},
                                                        {"foob", "Zm9vYg=="},
                                                        {"fooba", "Zm9vYmE="},
                                                        {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : kPairs) {
    EXPECT_EQ(to_base64(bytes_of(plain)), coded);
    EXPECT_EQ(from_base64(coded), bytes_of(plain));
  }
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "Z===", "====", "Zm9v\n", "Zm 9", "Zm9_", "=Zg="}) {
    EXPECT_FALSE(from_base64(text).has_value()) << text;
  }
}

TEST(Base64, ReadsBackAnyBytes) {
  Rng rng(5);
  for (std::size_t size = 0; size < 70; ++size) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  }
}

}  // namespace
}  // namespace fusediff
