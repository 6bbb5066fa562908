// Files as NumPy would have written them, made by hand: what a header says is the test's, whether true or not.
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "target/target.h"

namespace fusediff {

// A .npy of version 1 with this dict as its header.
inline std::string npy(const std::string& dict, const std::string& elements) {
  std::string header = dict;
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string text = std::string("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size() & 255);
  text += static_cast<char>(header.size() >> 8);
  return text + header + elements;
}

inline std::string npy_of(const std::string& descr, const std::string& shape, const std::string& elements,
                          bool fortran = false) {
  return npy(
      "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }",
      elements);
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

using Members = std::vector<std::pair<std::string, std::string>>;

inline void write_zip(const std::filesystem::path& file, const Members& members, bool deflated) {
  struct archive* zip = ::archive_write_new();
  ::archive_write_set_format_zip(zip);
  ::archive_write_set_options(zip, deflated ? "zip:compression=deflate" : "zip:compression=store");
  ASSERT_EQ(::archive_write_open_filename(zip, file.c_str()), ARCHIVE_OK);
  for (const auto& [name, text] : members) {
    struct archive_entry* entry = ::archive_entry_new();
    ::archive_entry_set_pathname(entry, name.c_str());
    ::archive_entry_set_size(entry, static_cast<la_int64_t>(text.size()));
    ::archive_entry_set_filetype(entry, AE_IFREG);
    ::archive_entry_set_perm(entry, 0644);
    ASSERT_EQ(::archive_write_header(zip, entry), ARCHIVE_OK);
    ASSERT_EQ(::archive_write_data(zip, text.data(), text.size()), static_cast<la_ssize_t>(text.size()));
    ::archive_entry_free(entry);
  }
  ASSERT_EQ(::archive_write_free(zip), ARCHIVE_OK);
}

// A folder of the test's own, and the built-in operators.
class Imports : public testing::Test {
 protected:
  Imports() : folder_(std::filesystem::path(testing::TempDir()) / ("fusediff_import_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "out");
  }
  ~Imports() override { std::filesystem::remove_all(folder_); }

  void SetUp() override {
    const Result<const Target*> target = loader_.load(FUSEDIFF_BIN_DIR "/targets/builtin.so");
    ASSERT_TRUE(target.ok()) << target.error().what;
    schema_ = &(*target)->schema;
  }

  std::filesystem::path put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  const std::filesystem::path folder_;
  TargetLoader loader_{{}};
  const Schema* schema_ = nullptr;
};

}  // namespace fusediff
