// One path in two ways: for each relation a fault of its kind is found, named and classed, and what only looks like it
// passes.
#include <sched.h>

#include <cmath>

#include "engine/toy_target.h"

namespace fusediff {
namespace {

using namespace toy;

constexpr double kUlp = 0x1p-23;  // of f32 at 1

// y [R, C] from x [R, C], and s, the sum of all of x, which is no matter of rows.
std::string rows_op(const std::string& output = "", const std::string& members = "") {
  return R"({"name": "op", "paths": ["fused", "unfused"],
      "dims": {"R": {"range": [0, 64]}, "C": {"range": [0, 64]}},
      "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": ["f32", "f16"], "layout": "any"}],
      "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "=x", "layout": "any", "stage": 1)" +
         output + R"(}, {"name": "s", "shape": [1], "dtype": "f32", "optional": true}],
      "rows": {"dim": "R", "inputs": ["x"], "outputs": ["y"]})" +
         members + "}";
}

// relation: with its parameters, e.g. "row_alone": {"row": 3}.
Case asking(const std::string& relation, std::int64_t rows = 8, std::int64_t columns = 6,
            const std::string& members = "", const std::string& fill = R"({"uniform": [1, 2], "seed": 5})") {
  return case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"R": )" + std::to_string(rows) + R"(, "C": )" +
                 std::to_string(columns) + R"(}, "dtypes": {"x": "f32"}, "inputs": {"x": {"fill": )" + fill + "}}" +
                 members + R"(, "experiment": {"relation": {)" + relation + "}}}");
}

// y = f(x, row, column, rows).
using Element = std::function<double(double, std::int64_t, std::int64_t, std::int64_t)>;
Path by_element(const Element& f) {
  return [f](const fusediff_call& call) {
    const fusediff_tensor &x = in(call, "x"), &y = out(call, "y"), &s = out(call, "s");
    double sum = 0;
    const std::int64_t columns = y.shape[1];
    for (std::int64_t i = 0; i < count(y); ++i) {
      sum += get(x, i);
      set(y, i, f(get(x, i), i / columns, i % columns, y.shape[0]));
    }
    if (s.data != nullptr) set(s, 0, sum);
    return FUSEDIFF_OK;
  };
}
double doubled(double x, std::int64_t, std::int64_t, std::int64_t) { return 2 * x; }

struct Rows : testing::Test {
  Verdict ask(const std::string& relation, const Path& fused, const std::string& output = "") {
    Toy toy(rows_op(output));
    toy.paths = {{"fused", fused}, {"unfused", by_element(doubled)}};
    return check(toy, asking(relation));
  }
};

const char* const kRowsRelations[] = {R"("row_alone": {"row": 3})", R"("rows_permuted": {"seed": 1})",
                                      R"("batch_split": {"row": 3})"};

std::string found(const Verdict& verdict) {
  return in_short(verdict) + (verdict.finding ? " " + verdict.finding->oracle + " " + verdict.finding->relation : "");
}
const std::string& words(const Verdict& verdict) { return verdict.finding->evidence.at(0).what; }
bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
bool notes(const Verdict& verdict, const std::string& part) {
  for (const std::string& note : verdict.finding->notes) {
    if (says(note, part)) return true;
  }
  return false;
}

TEST_F(Rows, AResultThatDependsOnTheRowsIndexIsFound) {
  const auto with_error = [](double error) {
    return by_element(
        [error](double x, std::int64_t row, std::int64_t, std::int64_t) { return 2 * x * (row == 3 ? 1 + error : 1); });
  };
  for (const char* relation : kRowsRelations) {
    const std::string name = std::string(relation).substr(1, std::string(relation).find('"', 1) - 1);
    EXPECT_EQ(found(ask(relation, with_error(2 * kUlp))), "rounding y relation " + name);
    EXPECT_EQ(found(ask(relation, with_error(0.5))), "damage y relation " + name);
    EXPECT_EQ(found(ask(relation, with_error(0))), "pass");
  }
}

TEST_F(Rows, TheWrongRunIsAccusedWhicheverItIs) {
  const Verdict batch =
      ask(kRowsRelations[0],
          by_element([](double x, std::int64_t row, std::int64_t, std::int64_t) { return row == 3 ? 3 * x : 2 * x; }));
  ASSERT_EQ(found(batch), "damage y relation row_alone");
  ASSERT_TRUE(batch.finding->evidence[0].accused);
  EXPECT_EQ(batch.finding->columns[index_of(*batch.finding->evidence[0].accused)], "in its batch");
  EXPECT_TRUE(says(words(batch), "row 3 alone gives other bits than in its batch of 8: y differs in 6 of 6 elements"))
      << words(batch);
  EXPECT_TRUE(says(batch.finding->differences[0].judged_by, "relative to unfused: "));
  EXPECT_EQ(batch.finding->paths, (std::array<std::string, 2>{"fused", "fused"}));

  const Verdict alone = ask(kRowsRelations[0], by_element([](double x, std::int64_t, std::int64_t, std::int64_t rows) {
                              return rows == 1 ? 3 * x : 2 * x;
                            }));
  ASSERT_EQ(found(alone), "damage y relation row_alone");
  ASSERT_TRUE(alone.finding->evidence[0].accused);
  EXPECT_EQ(alone.finding->columns[index_of(*alone.finding->evidence[0].accused)], "row alone");
}

TEST_F(Rows, OtherRowsMayMoveNothing) {
  // The sum over all rows leaks into each.
  const Path leaks = [](const fusediff_call& call) {
    double sum = 0;
    for (std::int64_t i = 0; i < count(in(call, "x")); ++i) sum += get(in(call, "x"), i);
    return by_element([sum](double x, std::int64_t, std::int64_t, std::int64_t) { return 2 * x + sum * kUlp; })(call);
  };
  EXPECT_EQ(found(ask(kRowsRelations[0], leaks)), "damage y relation row_alone");
  EXPECT_EQ(found(ask(kRowsRelations[2], leaks)), "damage y relation batch_split");
  EXPECT_EQ(found(ask(kRowsRelations[1], leaks)), "pass");  // the sum stays
}

TEST_F(Rows, BitsCountWhateverTwoPathsMayDifferBy) {
  const std::string agree = R"(, "agree": {"ulp": 8, "why": "a test"})";
  const Path fault = by_element(
      [](double x, std::int64_t row, std::int64_t, std::int64_t) { return 2 * x * (row == 3 ? 1 + kUlp : 1); });
  EXPECT_EQ(found(ask(kRowsRelations[0], fault, agree)), "rounding y relation row_alone");
  Toy toy(rows_op(agree, R"(, "deterministic": false)"));
  toy.paths = {{"fused", fault}, {"unfused", by_element(doubled)}};
  EXPECT_EQ(found(check(toy, asking(kRowsRelations[0]))), "pass");
}

TEST_F(Rows, ABoundDecides) {
  const std::string bound = R"(, "bound": {"ulp": "8", "of": "element", "why": "a test"})";
  const auto with_error = [](double error) {
    return by_element(
        [error](double x, std::int64_t row, std::int64_t, std::int64_t) { return 2 * x * (row == 3 ? 1 + error : 1); });
  };
  EXPECT_EQ(found(ask(kRowsRelations[0], with_error(4 * kUlp), bound)), "rounding y relation row_alone");
  EXPECT_EQ(found(ask(kRowsRelations[0], with_error(32 * kUlp), bound)), "damage y relation row_alone");
}

TEST_F(Rows, APathThatDisagreesWithItselfIsNoMatterOfRows) {
  int calls = 0;
  const Path chance = [&calls](const fusediff_call& call) {
    const double error = ++calls % 3 == 0 ? 1 : 0;
    return by_element([error](double x, std::int64_t, std::int64_t, std::int64_t) { return 2 * x + error; })(call);
  };
  for (const char* relation : kRowsRelations) {
    for (calls = 0; calls < 3; ++calls) {
      const int phase = calls;
      const Verdict verdict = ask(relation, chance);
      calls = phase;
      if (!verdict.finding) continue;  // the first look did not meet it
      EXPECT_EQ(found(verdict), "nondeterminism y self ");
      EXPECT_FALSE(has(*verdict.finding, FindingClass::kDamage));
    }
  }
}

TEST_F(Rows, WhatASmallerCallDoesWrongIsJudgedAsAnywhere) {
  const auto when_alone = [](const Path& other) -> Path {
    return [other](const fusediff_call& call) {
      return out(call, "y").shape[0] == 1 ? other(call) : by_element(doubled)(call);
    };
  };
  EXPECT_EQ(found(ask(kRowsRelations[0], when_alone([](const fusediff_call&) { return FUSEDIFF_REJECTED; }))),
            "undeclared_limit status ");
  EXPECT_EQ(found(ask(kRowsRelations[0], when_alone([](const fusediff_call&) { return FUSEDIFF_UNSUPPORTED; }))),
            "skip");
  EXPECT_EQ(found(ask(kRowsRelations[0], when_alone([](const fusediff_call& call) {
                        set(out(call, "s"), 0, get(in(call, "x"), 0));
                        return FUSEDIFF_OK;
                      }))),
            "unwritten y fill ");
}

TEST_F(Rows, ARowMayLieAlongAnyAxisAndInAnyLayout) {
  Toy toy(R"({"name": "op", "paths": ["fused", "unfused"],
      "dims": {"R": {"range": [0, 64]}, "C": {"range": [0, 64]}},
      "inputs": [{"name": "x", "shape": [2, "R", "C"], "dtype": ["f32"], "layout": "any"},
                 {"name": "w", "shape": ["C"], "dtype": "f32"}],
      "outputs": [{"name": "y", "shape": [2, "R", "C"], "dtype": "=x", "layout": "any"}],
      "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}})");
  int wrong_rows = 0;
  const Path path = [&wrong_rows](const fusediff_call& call) {
    const fusediff_tensor &x = in(call, "x"), &w = in(call, "w"), &y = out(call, "y");
    for (std::int64_t i = 0; i < count(y); ++i) {
      const bool wrong = i / y.shape[2] % y.shape[1] < wrong_rows;
      set(y, i, get(x, i) * get(w, i % y.shape[2]) + (wrong ? 1 : 0));
    }
    return FUSEDIFF_OK;
  };
  toy.paths = {{"fused", path}, {"unfused", path}};
  for (const char* relation : kRowsRelations) {
    for (const char* layout :
         {"", R"(, "layout": {"x": {"stride": [1, 2, 10]}})", R"(, "layout": {"y": {"stride": [40, 7, 1]}})",
          R"(, "layout": {"x": {"stride": [4, 0, 1]}})", R"(, "layout": {"x": {"stride": [4, 0, 1]}})"}) {
      const Case c = case_of(
          R"({"fusediff_case": 1, "op": "op", "dims": {"R": 5, "C": 4}, "inputs": {"w": {"fill": {"ramp": [1, 2]}},
              "x": {"fill": {"uniform": [1, 2], "seed": 9}}})" +
          std::string(layout) + R"(, "experiment": {"relation": {)" + relation + "}}}");
      wrong_rows = 0;
      EXPECT_EQ(in_short(check(toy, c)), "pass") << relation << layout;
      wrong_rows = 1;  // row 0 of every call
      EXPECT_EQ(in_short(check(toy, c)), "damage y") << relation << layout;
    }
  }
}

TEST_F(Rows, WhatTheRecordLacksOrForbidsIsSaid) {
  const auto reason = [](const std::string& schema, const Case& c) {
    Toy toy(schema);
    toy.paths = {{"fused", by_element(doubled)}, {"unfused", by_element(doubled)}};
    const Verdict verdict = check(toy, c);
    return in_short(verdict) + ": " + verdict.reason;
  };
  const Case row = asking(kRowsRelations[0]);
  const std::string plain = rows_op();
  std::string without = plain;
  without.replace(without.find(R"("rows": {)"),
                  without.find("}", without.find(R"("rows": {)")) + 1 - without.find(R"("rows": {)"),
                  R"("deterministic": true)");
  EXPECT_EQ(reason(without, row),
            "skip: the record of op has no `rows`: add it to ask whether a row depends on the others of its batch");
  EXPECT_EQ(reason(plain, asking(kRowsRelations[0], 2)), "skip: there is no row 3: R is 2");
  EXPECT_EQ(reason(plain, asking(R"("row_alone": {"row": 0})", 1)), "vacuous: fewer than two rows (R = 1)");
  EXPECT_EQ(reason(plain, asking(R"("batch_split": {"row": 0})")), "vacuous: all rows are in the second part");
  EXPECT_TRUE(says(reason(rows_op("", R"(, "where": ["R % 8 == 0"])"), row), "skip: one row alone: "));
  EXPECT_EQ(reason(rows_op("", R"(, "attrs": [{"name": "n", "int": "R"}])"), row), "skip: the attribute n hangs on R");
  const auto with_input = [&](const std::string& input) {
    std::string text = plain;
    text.replace(text.find(R"("inputs": [)"), 11, R"("inputs": [)" + input + ", ");
    return text;
  };
  Case more = row;
  more.inputs["i"].fill.kind = FillKind::kIndexUniform;
  EXPECT_EQ(
      reason(with_input(R"({"name": "i", "shape": ["C"], "dtype": "i32", "role": "index", "range": [0, "R"]})"), more),
      "skip: the range of i hangs on R");
  EXPECT_EQ(reason(with_input(R"({"name": "i", "shape": ["R + 1"], "dtype": "i32", "role": "index", "range": [0, 4]})"),
                   more),
            "skip: the shape of i hangs on R and the record's `rows` does not list it");
}

TEST(Dense, AStrideThatIsIgnored) {
  Toy toy(rows_op());
  bool honours = false;
  const Path path = [&honours](const fusediff_call& call) {
    fusediff_tensor x = in(call, "x");
    const std::int64_t dense[] = {x.shape[1], 1};
    if (!honours) x.stride = dense;
    for (std::int64_t i = 0; i < count(x); ++i) set(out(call, "y"), i, 2 * get(x, i));
    if (out(call, "s").data != nullptr) set(out(call, "s"), 0, 1);
    return FUSEDIFF_OK;
  };
  toy.paths = {{"fused", path}, {"unfused", by_element(doubled)}};
  const Case c = asking(R"("dense": {})", 8, 6, R"(, "layout": {"x": {"stride": [1, 8]}}, "unwanted": ["s"])");
  const Verdict verdict = check(toy, c);
  ASSERT_EQ(found(verdict), "damage y relation dense");
  EXPECT_TRUE(says(words(verdict), "laid out as the case says it gives other bits than laid out densely"));
  EXPECT_TRUE(notes(verdict, "the layout of x alone makes the difference"));
  ASSERT_TRUE(verdict.finding->evidence[0].accused);
  EXPECT_EQ(verdict.finding->columns[index_of(*verdict.finding->evidence[0].accused)], "as the case says");
  honours = true;
  EXPECT_EQ(found(check(toy, c)), "pass");
  Case repeated = c;
  repeated.layout["x"].stride = {{0, 1}};
  EXPECT_EQ(found(check(toy, repeated)), "pass");
  repeated.layout.clear();
  EXPECT_EQ(check(toy, repeated).reason, "the case has no layout of its own");
}

// y = 2 x, one ULP more where the address of the tensor is `odd`.
Path by_address(const std::string& tensor, std::function<bool(std::uintptr_t)> odd) {
  return [=](const fusediff_call& call) {
    const fusediff_tensor& at = tensor == "x" ? in(call, "x") : out(call, "y");
    const double factor = odd(reinterpret_cast<std::uintptr_t>(at.data)) ? 1 + kUlp : 1;
    return by_element([factor](double x, std::int64_t, std::int64_t, std::int64_t) { return 2 * x * factor; })(call);
  };
}

TEST(Moved, AnAddressThatChangesTheBits) {
  const Case c = asking(R"("moved": {})", 8, 6, R"(, "layout": {"x": {"place": "start"}})");  // at 0 modulo 4096
  Toy toy(rows_op());
  toy.paths = {{"fused", by_address("x", [](std::uintptr_t at) { return at % 16 != 0; })},
               {"unfused", by_element(doubled)}};
  const Verdict verdict = check(toy, c);
  ASSERT_EQ(found(verdict), "rounding y relation moved");
  EXPECT_TRUE(says(words(verdict), "with every tensor moved to 4 bytes modulo 64"));
  EXPECT_TRUE(notes(verdict,
                    "differs at offset 4 bytes modulo 64 of all tensors, and at 8, 12, 20, 24, 28, 36, 40, 44, 52, 56, "
                    "60; not at 0, 16, 32, 48"));
  EXPECT_TRUE(notes(verdict, "moving x alone makes the difference"));

  toy.paths["fused"] = by_address("y", [](std::uintptr_t at) { return at % 64 == 40; });
  const Verdict of_output = check(toy, c);
  ASSERT_EQ(found(of_output), "rounding y relation moved");
  EXPECT_TRUE(notes(of_output, "moving y alone makes the difference"));

  toy.paths["fused"] = by_address("x", [](std::uintptr_t at) { return at % 4 != 0; });
  EXPECT_EQ(found(check(toy, c)), "pass");
}

TEST(Inplace, AnOutputOnItsInput) {
  Toy toy(rows_op("", R"(, "inplace": [["y", "x"]])"));
  bool careful = false;
  const Path path = [&careful](const fusediff_call& call) {
    const fusediff_tensor &x = in(call, "x"), &y = out(call, "y");
    std::vector<double> before;
    for (std::int64_t i = 0; i < count(x); ++i) before.push_back(get(x, i));
    for (std::int64_t i = 0; i < count(x); ++i) {
      const std::int64_t next = (i + 1) % count(x);
      set(y, i,
          before[static_cast<std::size_t>(i)] + (careful ? before[static_cast<std::size_t>(next)] : get(x, next)));
    }
    if (out(call, "s").data != nullptr) set(out(call, "s"), 0, 1);
    return FUSEDIFF_OK;
  };
  toy.paths = {{"fused", path}, {"unfused", path}};
  const Case c = asking(R"("inplace": {})");
  const Verdict verdict = check(toy, c);
  ASSERT_EQ(found(verdict), "damage y relation inplace");
  EXPECT_TRUE(says(words(verdict), "with y on x it gives other bits than with y apart"));
  // A layout that no output may have is let go of.
  EXPECT_EQ(found(check(toy, asking(R"("inplace": {})", 8, 6, R"(, "layout": {"x": {"stride": [0, 1]}})"))),
            "damage y relation inplace");
  careful = true;
  EXPECT_EQ(found(check(toy, c)), "pass");
  Toy none(rows_op());
  none.paths = toy.paths;
  EXPECT_EQ(in_short(check(none, c)), "vacuous");
  Toy always(rows_op("", R"(, "inplace": [["y", "x", "always"]])"));
  always.paths = toy.paths;
  EXPECT_EQ(in_short(check(always, c)), "vacuous");
}

TEST(SameValue, ABodyAndATailThatDiffer) {
  Toy toy(rows_op());
  const auto with_tail = [](double error) {
    return by_element([error](double x, std::int64_t, std::int64_t column, std::int64_t) {
      return 2 * x * (column < 16 ? 1 : 1 + error);
    });
  };
  const Case c = asking(R"("same_value": {})", 4, 19);
  toy.paths = {{"fused", with_tail(kUlp)}, {"unfused", by_element(doubled)}};
  const Verdict verdict = check(toy, c);
  ASSERT_EQ(found(verdict), "rounding y relation same_value");
  EXPECT_TRUE(says(words(verdict), "y differs in 12 of 76 elements")) << words(verdict);
  EXPECT_TRUE(says(words(verdict), "in row 0, positions 0..15 give ")) << words(verdict);
  EXPECT_TRUE(says(words(verdict), ", 16..18: ")) << words(verdict);
  toy.paths["fused"] = with_tail(0.5);
  EXPECT_EQ(found(check(toy, c)), "damage y relation same_value");
  toy.paths["fused"] = with_tail(0);
  EXPECT_EQ(found(check(toy, c)), "pass");
  EXPECT_EQ(in_short(check(toy, asking(R"("same_value": {})", 4, 1))), "vacuous");
}

TEST(SameValue, TheOperatorSaysWhetherPositionMatters) {
  Toy toy(rows_op());
  const Path by_column = by_element(
      [](double x, std::int64_t, std::int64_t column, std::int64_t) { return x * static_cast<double>(column + 1); });
  toy.paths = {{"fused", by_column}, {"unfused", by_column}};
  const Case c = asking(R"("same_value": {})", 4, 19);
  EXPECT_EQ(check(toy, c).reason, "position matters to every row of the outputs");

  // No f64: the other path says it.
  const auto narrow = [](const Path& path) -> Path {
    return [path](const fusediff_call& call) {
      return call.inputs[0].dtype == FUSEDIFF_F64 ? FUSEDIFF_UNSUPPORTED : path(call);
    };
  };
  toy.paths = {{"fused", narrow(by_column)}, {"unfused", narrow(by_column)}};
  EXPECT_EQ(in_short(check(toy, c)), "vacuous");
  toy.paths["unfused"] = narrow(by_element(doubled));
  EXPECT_EQ(found(check(toy, c)), "damage y relation same_value");
}

TEST(SameValue, ATruthThatIsEvenByChanceProvesNothing) {
  // Position matters unless x is 1; then what underflows in f32 has another sign of zero in odd columns.
  Toy toy(rows_op());
  const Path path = by_element([](double x, std::int64_t, std::int64_t column, std::int64_t) {
    const double tiny = x * 0x1p-140;  // 0 in f32 only
    return column % 2 == 0 || x == 1 ? tiny : tiny * 3;
  });
  const Path signs = [path](const fusediff_call& call) {
    const fusediff_status status = path(call);
    for (std::int64_t i = 1; call.outputs[0].dtype == FUSEDIFF_F32 && i < count(call.outputs[0]); i += 2)
      set(call.outputs[0], i, -0.0);
    return status;
  };
  toy.paths = {{"fused", signs}, {"unfused", path}};
  EXPECT_EQ(in_short(check(toy, asking(R"("same_value": {})", 4, 6, "", R"({"constant": 1})"))), "vacuous");
}

TEST(SameValue, PositionsThatInputsTellApartAreNoPositions) {
  // Each output position has a row of w of its own; the sums cancel to 0 in f64 and not in f32.
  Toy toy(R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"R": {"range": [0, 64]}, "C": {"range": [0, 64]}},
      "inputs": [{"name": "w", "shape": ["R", "C"], "dtype": ["f32"]}],
      "outputs": [{"name": "s", "shape": ["R"], "dtype": "=w"}]})");
  const Path path = [](const fusediff_call& call) {
    const fusediff_tensor &w = in(call, "w"), &s = out(call, "s");
    for (std::int64_t i = 0; i < count(s); ++i) {
      const double x = get(w, i * w.shape[1]);
      const bool wide = s.dtype == FUSEDIFF_F64;
      set(s, i, wide ? x - x : x - static_cast<double>(static_cast<float>(x) * 1.5F) / 1.5);
    }
    return FUSEDIFF_OK;
  };
  toy.paths = {{"fused", path}, {"unfused", path}};
  const Case c = case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"R": 5, "C": 3}, "dtypes": {"w": "f32"},
      "inputs": {"w": {"fill": {"uniform": [1, 2], "seed": 1}}}, "experiment": {"relation": {"same_value": {}}}})");
  const Verdict verdict = check(toy, c);
  EXPECT_EQ(in_short(verdict), "vacuous");
  EXPECT_EQ(verdict.reason, "no output has a row of two or more whose positions no input tells apart");
}

TEST(SameValue, AWeightOfEachColumnIsLevelledToo) {
  Toy toy(R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"R": {"range": [0, 64]}, "C": {"range": [0, 64]}},
      "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": ["f32"], "layout": "any"},
                 {"name": "w", "shape": ["C"], "dtype": "f32"},
                 {"name": "p", "shape": ["R", "C"], "dtype": "f32", "role": "probability"},
                 {"name": "i", "shape": ["R", "C"], "dtype": "i32", "role": "index", "range": [0, 9]}],
      "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "=x"}]})");
  double tail = 0;
  const Path path = [&](const fusediff_call& call) {
    for (std::int64_t i = 0; i < count(out(call, "y")); ++i) {
      const std::int64_t c = i % in(call, "w").shape[0];
      set(out(call, "y"), i,
          get(in(call, "x"), i) * get(in(call, "w"), c) + get(in(call, "p"), i) + get(in(call, "i"), i) +
              (c > 3 ? tail : 0));
    }
    return FUSEDIFF_OK;
  };
  toy.paths = {{"fused", path}, {"unfused", path}};
  const Case c = case_of(R"({"fusediff_case": 1, "op": "op", "dims": {"R": 3, "C": 6},
      "inputs": {"x": {"fill": {"uniform": [1, 2], "seed": 1}}, "w": {"fill": {"uniform": [1, 2], "seed": 2}},
                 "p": {"fill": {"uniform": [1, 2], "seed": 4}}, "i": {"fill": {"constant": 3}}},
      "experiment": {"relation": {"same_value": {}}}})");
  EXPECT_EQ(in_short(check(toy, c)), "pass");
  tail = 1;  // in f64 too: then position matters to the operator
  EXPECT_EQ(in_short(check(toy, c)), "vacuous");
  tail = 0;
  Case uneven = c;
  uneven.inputs["i"].fill.kind = FillKind::kIndexUniform;
  EXPECT_EQ(check(toy, uneven).reason, "no output has a row of two or more whose positions no input tells apart");
}

TEST(OneCpu, BitsThatDependOnTheAffinity) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "one CPU only";
  Toy toy(rows_op());
  const auto with_error = [](double error) -> Path {
    return [error](const fusediff_call& call) {
      cpu_set_t set;
      CPU_ZERO(&set);
      EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
      const double factor = CPU_COUNT(&set) == 1 ? 1 + error : 1;
      return by_element([factor](double x, std::int64_t, std::int64_t, std::int64_t) { return 2 * x * factor; })(call);
    };
  };
  toy.paths = {{"fused", with_error(kUlp)}, {"unfused", by_element(doubled)}};
  const Case c = asking(R"("one_cpu": {})");
  const Verdict verdict = check(toy, c);
  ASSERT_EQ(found(verdict), "rounding y relation one_cpu");
  EXPECT_TRUE(says(words(verdict), "kept on one CPU it gives other bits than free to use all"));
  EXPECT_EQ(verdict.finding->rates[0].pinned_runs, 0);
  toy.paths["fused"] = with_error(0);
  EXPECT_EQ(found(check(toy, c)), "pass");
  int calls = 0;
  toy.paths["fused"] = [&calls](const fusediff_call& call) {
    const double error = ++calls % 2 == 0 ? 1 : 0;
    return by_element([error](double x, std::int64_t, std::int64_t, std::int64_t) { return 2 * x + error; })(call);
  };
  EXPECT_EQ(in_short(check(toy, c)), "nondeterminism y");
}

TEST(Relation, OutputsThatTheCaseDoesNotWantAreAskedForWhenBlameIsSought) {
  Toy toy(R"({"name": "op", "paths": ["fused", "unfused"], "dims": {"R": {"range": [0, 64]}, "C": {"range": [0, 64]}},
      "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": ["f32"]}],
      "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "=x", "stage": 2},
                  {"name": "h", "shape": ["R", "C"], "dtype": "=x", "stage": 1, "optional": true}],
      "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}})");
  const Path path = [](const fusediff_call& call) {
    for (std::int64_t i = 0; i < count(out(call, "y")); ++i) {
      const double h = get(in(call, "x"), i) + static_cast<double>(i / out(call, "y").shape[1]);
      if (out(call, "h").data != nullptr) set(out(call, "h"), i, h);
      set(out(call, "y"), i, 2 * h);
    }
    return FUSEDIFF_OK;
  };
  toy.paths = {{"fused", path}, {"unfused", path}};
  const Verdict verdict = check(toy, asking(kRowsRelations[0], 8, 6, R"(, "unwanted": ["h"])"));
  ASSERT_EQ(found(verdict), "damage h relation row_alone");
  EXPECT_EQ(verdict.finding->stage, 1);
}

TEST(Relation, NearlyAllZerosProveLittle) {
  Toy toy(rows_op());
  toy.paths = {{"fused", by_element(doubled)}, {"unfused", by_element(doubled)}};
  for (const char* relation : kRowsRelations)
    EXPECT_EQ(in_short(check(toy, asking(relation, 8, 6, R"(, "unwanted": ["s"])", R"({"constant": 0})"))), "vacuous");
}

}  // namespace
}  // namespace fusediff
