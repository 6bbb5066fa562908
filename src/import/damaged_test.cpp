// Files that lie, are cut off, or are damaged: one clear line, never more than they are.
#include <gmock/gmock.h>

#include "base/rng.h"
#include "import/literal.h"
#include "import/made_test.h"
#include "import/suite.h"
#include "import/tensors.h"
#include "model/safetensors.h"

namespace fusediff {
namespace {

using testing::HasSubstr;

class Damaged : public Imports {
 protected:
  // What importing it says; "": it went well.
  std::string import(const std::filesystem::path& file) {
    TensorOptions options;
    options.out = folder_ / "out";
    for (const CaptureFormat& format : capture_formats()) {
      if (file.extension() != format.ending) continue;
      const Result<int> made =
          import_tensors({{file, &format}}, *schema_->find("moe_gating_topk"), options, [](const std::string&) {});
      if (made.ok()) return "";
      EXPECT_EQ(made.error().what.find('\n'), std::string::npos) << made.error().what;
      EXPECT_EQ(made.error().blame, Blame::kUser);
      return made.error().what;
    }
    return "no format";
  }
  std::string npy_says(const std::string& text) { return import(put("x.npy", text)); }
  std::string npz_says(const Members& members, bool deflated = true) {
    write_zip(folder_ / "all.npz", members, deflated);
    return import(folder_ / "all.npz");
  }
};

const std::string kGood = npy_of("<f4", "(2, 4)", std::string(32, '\0'));

TEST_F(Damaged, HeadersThatLieAboutTheirSize) {
  ASSERT_EQ(npy_says(kGood), "");
  EXPECT_THAT(npy_says(kGood.substr(0, kGood.size() - 1)), HasSubstr("holds 31 bytes of elements, its header says 32"));
  EXPECT_THAT(npy_says(kGood + "x"), HasSubstr("holds 33 bytes"));
  EXPECT_THAT(npy_says(npy_of("<f4", "(9999999999, 9999999999)", "")), HasSubstr("more than 2^31 elements"));
  EXPECT_THAT(npy_says(npy_of("<f4", "(-1, 4)", "")), HasSubstr("no size"));
  EXPECT_THAT(npy_says(npy_of("<f4", "(99999999999999999999,)", "")), HasSubstr("integer beyond 64 bits"));
  EXPECT_THAT(npy_says(kGood.substr(0, 20)), HasSubstr("is cut off"));
  EXPECT_THAT(npy_says("nothing of the kind"), HasSubstr("no .npy data"));
  EXPECT_THAT(npy_says(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)), HasSubstr("header of 4294967295 bytes"));
  EXPECT_THAT(npz_says({{"x.npy", npy_of("<f4", "(60000, 512)", std::string(32, '\0'))}}),
              HasSubstr("holds 32 bytes of elements, its header says 122880000"));
}

TEST_F(Damaged, WhatIsNoNumberIsNeverUnpacked) {
  EXPECT_THAT(npy_says(npy_of("|O", "(2, 4)", std::string(64, 'x'))), HasSubstr("never unpickled"));
  EXPECT_THAT(npy_says(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 4)}", "")),
              HasSubstr("structured dtype"));
  EXPECT_THAT(npy_says(npy_of("<c8", "(2, 4)", std::string(64, 'x'))), HasSubstr("none that fusediff has"));
  EXPECT_THAT(npy_says(npy("__import__('os').system('true')", "")), HasSubstr("Python literal"));
}

TEST_F(Damaged, NamesThatLeaveTheirFolder) {
  EXPECT_THAT(npz_says({{"../x.npy", kGood}}), HasSubstr("out of its folder"));
  EXPECT_THAT(npz_says({{"a/../../x.npy", kGood}}), HasSubstr("out of its folder"));
  EXPECT_THAT(npz_says({{"/etc/x.npy", kGood}}), HasSubstr("out of its folder"));
  EXPECT_THAT(npz_says({{"a\nb.npy", kGood}}), HasSubstr("control characters"));
  EXPECT_THAT(npz_says({{"x.npy", kGood}, {"x.npy", kGood}}), HasSubstr("stands twice"));
}

TEST_F(Damaged, ABombIsRefusedBeforeItIsUnpacked) {
  // 256 MiB of zeros in 256 KiB, which is above the cap of the case.
  const std::string bomb = npy_of("<f4", "(131072, 512)", std::string(std::size_t{1} << 28, '\0'));
  write_zip(folder_ / "bomb.npz", {{"x.npy", bomb}}, true);
  ASSERT_LT(std::filesystem::file_size(folder_ / "bomb.npz"), 1 << 20);
  TensorOptions options;
  options.out = folder_ / "out";
  options.max_bytes = 1 << 20;
  const Result<int> made = import_tensors({{folder_ / "bomb.npz", &capture_formats()[1]}},
                                          *schema_->find("moe_gating_topk"), options, [](const std::string&) {});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().what, HasSubstr("--rows 0:"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "out"));
}

TEST_F(Damaged, NoByteOfASmallFileCanBeFlippedIntoTrouble) {
  write_zip(folder_ / "a.npz", {{"x.npy", kGood}, {"bias.npy", npy_of("<f4", "(4,)", std::string(16, '\0'))}}, true);
  const std::string stored = write_safetensors(std::vector<StoredTensor>{
      {"x", DType::kF32, {2, 4}, std::vector<std::byte>(32)}, {"bias", DType::kF32, {4}, std::vector<std::byte>(16)}});
  const std::pair<const char*, std::string> files[] = {
      {"f.npy", kGood}, {"f.npz", *read_file(folder_ / "a.npz", 1 << 20)}, {"f.safetensors", stored}};
  Rng rng(1);
  int refused = 0;
  for (const auto& [name, text] : files) {
    for (int i = 0; i < 800; ++i) {
      std::string broken = text;
      for (std::uint64_t flips = 1 + rng.below(4); flips > 0; --flips)
        broken[rng.below(broken.size())] = static_cast<char>(rng.below(256));
      if (rng.one_in(8)) broken.resize(rng.below(broken.size()));
      refused += import(put(name, broken)).empty() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST_F(Damaged, NoByteOfASuiteCanBeFlippedIntoTrouble) {
  Rng rng(2);
  for (const char* name : {"atk_two_ops.json", "ttk_mhc.csv"}) {
    const std::string text = *read_file(std::string(FUSEDIFF_SOURCE_DIR "/src/import/testdata/") + name, 1 << 20);
    const SuiteFormat& format = suite_formats()[name[0] == 'a' ? 0 : 1];
    for (int i = 0; i < 300; ++i) {
      std::string broken = text;
      for (std::uint64_t flips = 1 + rng.below(4); flips > 0; --flips)
        broken[rng.below(broken.size())] = static_cast<char>(rng.below(256));
      const Result<std::vector<SuiteRow>> rows = format.read(broken);
      if (!rows.ok()) continue;
      for (const SuiteRow& row : *rows) {
        std::vector<std::string> notes;
        (void)case_of_row(row, *schema_, 1 << 24, notes).ok();
      }
    }
  }
}

TEST(Literals, OfPythonAndNothingElse) {
  const Result<PyValue> value = parse_py_literal(" {'a': (1, -2.5e-3), \"b\": [True, None], 'c': ()} ");
  ASSERT_TRUE(value.ok()) << value.error().what;
  EXPECT_EQ(value->find("a")->items[0].integer, 1);
  EXPECT_EQ(value->find("a")->items[1].real, -2.5e-3);
  EXPECT_TRUE(value->find("b")->items[0].truth);
  EXPECT_TRUE(value->find("c")->is(PyValue::Kind::kSequence));
  for (const char* wrong :
       {"", "(1, 2", "{'a': 1, 'a': 2}", "1 + 1", "f(1)", "'abc", "{1: 2}", "1 2", "9223372036854775808"}) {
    EXPECT_FALSE(parse_py_literal(wrong).ok()) << wrong;
  }
  EXPECT_FALSE(parse_py_literal(std::string(1000, '(')).ok());
}

}  // namespace
}  // namespace fusediff
