// One side does something that needs no other side to be wrong: endings, memory, fills, inputs, itself.
#include <csignal>
#include <limits>

#include "engine/toy_target.h"

namespace fusediff {
namespace {

using namespace toy;

double plus_one(double x) { return x + 1; }

class Faults : public testing::Test {
 protected:
  Faults() { toy.paths = {{"fused", each(plus_one)}, {"unfused", each(plus_one)}}; }

  // The fused path does `fault` and then what is right.
  void before(const std::function<void(const fusediff_call&)>& fault) {
    toy.paths["fused"] = [fault](const fusediff_call& call) {
      fault(call);
      return each(plus_one)(call);
    };
  }
  void after(const std::function<void(const fusediff_call&)>& fault) {
    toy.paths["fused"] = [fault](const fusediff_call& call) {
      const fusediff_status status = each(plus_one)(call);
      fault(call);
      return status;
    };
  }

  Toy toy{one_to_one()};
};

TEST_F(Faults, HonestPathsPass) {
  EXPECT_EQ(in_short(check(toy, ones())), "pass");
  EXPECT_EQ(in_short(check(toy, ones(8, R"({"special": {}, "seed": 3})"))), "pass");
}

TEST_F(Faults, Hang) {
  static volatile bool forever = true;
  before([](const fusediff_call&) {
    while (forever) {
    }
  });
  CheckOptions options = quick();
  options.seconds = 0.2;
  const Verdict verdict = check(toy, ones(), options);
  EXPECT_EQ(in_short(verdict), "hang");
  EXPECT_EQ(verdict.finding->evidence[0].accused, Side::kTarget);
}

TEST_F(Faults, Memory) {
  toy.workspace = [](const fusediff_call& call) {
    return std::string_view(call.path) == "fused" ? std::size_t{1} << 40 : 0;
  };
  EXPECT_EQ(in_short(check(toy, ones())), "memory");
}

TEST_F(Faults, OverrunIntoAGuardPage) {
  after([](const fusediff_call& call) { static_cast<float*>(call.outputs[0].data)[count(call.outputs[0])] = 7; });
  const Verdict verdict = check(toy, ones());
  EXPECT_EQ(in_short(verdict), "overrun y");
}

TEST_F(Faults, OverrunIntoGuardBytes) {
  after([](const fusediff_call& call) { *(static_cast<std::byte*>(call.outputs[0].data) - 1) = std::byte{7}; });
  EXPECT_EQ(in_short(check(toy, ones())), "overrun y");
}

TEST_F(Faults, OverrunIntoTheGapsOfAStridedOutput) {
  after([](const fusediff_call& call) {
    if (call.outputs[0].stride[0] > 1) static_cast<float*>(call.outputs[0].data)[1] = 7;
  });
  EXPECT_EQ(in_short(check(toy, ones(8, R"({"constant": 1})", R"(, "layout": {"y": {"stride": [3]}})"))), "overrun y");
  EXPECT_EQ(in_short(check(toy, ones())), "pass");
}

TEST_F(Faults, OverreadOfAGuardPage) {
  before([](const fusediff_call& call) {
    (void)static_cast<const volatile float*>(call.inputs[0].data)[count(call.inputs[0])];
  });
  EXPECT_EQ(in_short(check(toy, ones())), "overread x");
}

TEST_F(Faults, OverreadThatReachesTheOutput) {
  after([](const fusediff_call& call) {
    set_bits(call.outputs[0], 2,
             bits(call.outputs[0], 2) ^ (static_cast<const std::uint32_t*>(call.inputs[0].data)[-1] & 2));
  });
  const Verdict verdict = check(toy, ones());
  EXPECT_EQ(in_short(verdict), "overread y");
  ASSERT_EQ(verdict.finding->byte_ranges.size(), 1u);
  EXPECT_EQ(verdict.finding->byte_ranges[0].follows, "guard");
}

TEST_F(Faults, CrashBySignal) {
  before([](const fusediff_call&) { raise(SIGFPE); });
  const Verdict verdict = check(toy, ones());
  EXPECT_EQ(in_short(verdict), "crash");
  EXPECT_EQ(verdict.finding->evidence[0].what, "SIGFPE in run()");
}

TEST_F(Faults, CrashByException) {
  before([](const fusediff_call&) { throw std::runtime_error("bad tile"); });
  EXPECT_EQ(in_short(check(toy, ones())), "crash");
}

TEST_F(Faults, CrashByBadStatus) {
  toy.paths["fused"] = [](const fusediff_call&) {
    const int number = 42;
    fusediff_status status;
    std::memcpy(&status, &number, sizeof status);
    return status;
  };
  EXPECT_EQ(in_short(check(toy, ones())), "crash");
}

TEST_F(Faults, Unwritten) {
  toy.paths["fused"] = [](const fusediff_call& call) {
    for (std::int64_t i = 0; i + 2 < count(call.outputs[0]); ++i) set(call.outputs[0], i, get(call.inputs[0], i) + 1);
    return FUSEDIFF_OK;
  };
  const Verdict verdict = check(toy, ones());
  EXPECT_EQ(in_short(verdict), "unwritten y");
  ASSERT_FALSE(verdict.finding->byte_ranges.empty());
  EXPECT_EQ(verdict.finding->byte_ranges[0].bytes, 8);
  EXPECT_EQ(verdict.finding->byte_ranges[0].total, 32);
  EXPECT_TRUE(has(*verdict.finding, FindingClass::kDamage));  // under `also`
}

TEST_F(Faults, UnwrittenOnBothSidesAlikeStillShows) {
  toy.paths["fused"] = toy.paths["unfused"] = [](const fusediff_call& call) {
    for (std::int64_t i = 1; i < count(call.outputs[0]); ++i) set(call.outputs[0], i, get(call.inputs[0], i) + 1);
    return FUSEDIFF_OK;
  };
  EXPECT_EQ(in_short(check(toy, ones())), "unwritten y");
}

TEST_F(Faults, AValueThatLooksLikeTheFillIsNone) {
  const auto fill = [](const fusediff_call& call) {
    for (std::int64_t i = 0; i < count(call.outputs[0]); ++i) set_bits(call.outputs[0], i, 0x3F3F3F3F);
    return FUSEDIFF_OK;
  };
  toy.paths = {{"fused", fill}, {"unfused", fill}};
  EXPECT_EQ(in_short(check(toy, ones())), "pass");
}

TEST_F(Faults, DirtyOutput) {
  toy.paths["fused"] = [](const fusediff_call& call) {
    for (std::int64_t i = 0; i < count(call.outputs[0]); ++i)
      set(call.outputs[0], i, get(call.outputs[0], i) + get(call.inputs[0], i) + 1);
    return FUSEDIFF_OK;
  };
  const Verdict verdict = check(toy, ones());
  EXPECT_EQ(in_short(verdict), "dirty y");
  EXPECT_EQ(verdict.finding->byte_ranges[0].follows, "output");
}

TEST_F(Faults, DirtyWorkspace) {
  toy.workspace = [](const fusediff_call&) { return std::size_t{64}; };
  after([](const fusediff_call& call) {
    set(call.outputs[0], 0, get(call.outputs[0], 0) + static_cast<float*>(call.workspace)[3]);
  });
  const Verdict verdict = check(toy, ones());
  EXPECT_EQ(in_short(verdict), "dirty y");
  EXPECT_EQ(verdict.finding->byte_ranges[0].follows, "workspace");
}

TEST_F(Faults, AWorkspaceThatIsWrittenFirstIsClean) {
  toy.workspace = [](const fusediff_call&) { return std::size_t{64}; };
  after([](const fusediff_call& call) {
    static_cast<float*>(call.workspace)[3] = 0;
    set(call.outputs[0], 0, get(call.outputs[0], 0) + static_cast<float*>(call.workspace)[3]);
  });
  EXPECT_EQ(in_short(check(toy, ones())), "pass");
}

TEST_F(Faults, InputChanged) {
  after([](const fusediff_call& call) { set(call.inputs[0], 3, 0.5); });
  EXPECT_EQ(in_short(check(toy, ones())), "input_changed x");
}

TEST_F(Faults, NondeterminismIsNotDamage) {
  int runs = 0;
  after([&runs](const fusediff_call& call) {
    if (++runs % 3 == 1) set(call.outputs[0], 1, 99);
  });
  const Verdict verdict = check(toy, ones());
  EXPECT_EQ(in_short(verdict), "nondeterminism y");
  EXPECT_GT(verdict.finding->rates[0].differing, 0);
  EXPECT_LT(verdict.finding->rates[0].differing, verdict.finding->rates[0].runs);
  EXPECT_EQ(verdict.finding->rates[1].differing, 0);
  EXPECT_GT(verdict.finding->rates[0].pinned_runs, 0);
}

TEST_F(Faults, ARareDifferenceTakesManyRerunsToStateItsRate) {
  int runs = 0;
  after([&runs](const fusediff_call& call) {
    if (runs++ % 100 == 0) set(call.outputs[0], 1, 99);
  });
  const Verdict verdict = check(toy, ones());
  EXPECT_EQ(in_short(verdict), "nondeterminism y");
  EXPECT_EQ(verdict.finding->rates[0].runs, 301);  // the first run was the odd one, and is counted
}

TEST_F(Faults, APathThatMayVaryVariesAsFarAsItsOutputsAgree) {
  Toy loose(one_to_one(R"(, "agree": {"ulp": 4, "why": "a test"})", R"(, "deterministic": false)"));
  int runs = 0;
  loose.paths = {{"unfused", each(plus_one)}, {"fused", [&runs](const fusediff_call& call) {
                                                 each(plus_one)(call);
                                                 set_bits(call.outputs[0], 0,
                                                          bits(call.outputs[0], 0) + static_cast<unsigned>(runs++ % 3));
                                                 return FUSEDIFF_OK;
                                               }}};
  EXPECT_EQ(in_short(check(loose, ones())), "pass");
}

TEST_F(Faults, UndeclaredLimit) {
  toy.paths["fused"] = [](const fusediff_call& call) {
    Toy::message() = "N must divide by 8, is " + std::to_string(call.inputs[0].shape[0]);
    return call.inputs[0].shape[0] % 8 == 0 ? each(plus_one)(call) : FUSEDIFF_REJECTED;
  };
  EXPECT_EQ(in_short(check(toy, ones(8))), "pass");
  const Verdict verdict = check(toy, ones(9));
  EXPECT_EQ(in_short(verdict), "undeclared_limit");
  EXPECT_EQ(verdict.finding->relation, "N_must_divide_by_is");
}

TEST_F(Faults, FailedIsAnUndeclaredLimitToo) {
  toy.paths["fused"] = [](const fusediff_call&) { return FUSEDIFF_FAILED; };
  EXPECT_EQ(in_short(check(toy, ones())), "undeclared_limit");
}

TEST_F(Faults, AcceptedIllegal) {
  Toy even(one_to_one("", R"(, "where": ["N % 2 == 0"])"));
  even.paths = toy.paths;
  CheckOptions options = quick();
  options.outside = true;
  EXPECT_EQ(in_short(check(even, ones(7), options)), "accepted_illegal");
  even.paths["fused"] = even.paths["unfused"] = [](const fusediff_call& call) {
    return call.inputs[0].shape[0] % 2 == 0 ? each(plus_one)(call) : FUSEDIFF_REJECTED;
  };
  EXPECT_EQ(in_short(check(even, ones(7), options)), "pass");
}

TEST_F(Faults, ASideMustRejectWhatItsOwnRecordForbids) {
  Toy even(one_to_one("", R"(, "where": ["N % 2 == 0"])")), any(one_to_one(), "any");
  any.paths = toy.paths;
  even.paths["fused"] = [](const fusediff_call&) { return FUSEDIFF_REJECTED; };
  CheckOptions options = quick();
  options.outside = true;
  const Comparison comparison{{PathOf{&even.target, "fused"}, PathOf{&any.target, "unfused"}}, nullptr};
  EXPECT_EQ(in_short(check(comparison, ones(7), options)), "pass");
  any.paths["unfused"] = even.paths["fused"];
  EXPECT_EQ(in_short(check(comparison, ones(7), options)), "undeclared_limit");
}

TEST_F(Faults, ALegalCaseStaysOneWhenIllegalOnesAreCalledToo) {
  Toy even(one_to_one("", R"(, "where": ["N % 2 == 0"])"));
  even.paths = toy.paths;
  CheckOptions options = quick();
  options.outside = true;
  EXPECT_EQ(in_short(check(even, ones(8), options)), "pass");
  even.paths["fused"] = each([](double x) { return x + 2; });
  EXPECT_EQ(in_short(check(even, ones(8), options)), "damage y");
}

TEST_F(Faults, Invariant) {
  Toy ranged(one_to_one(R"(, "always": [{"range": [0, 3]}])"));
  ranged.paths = toy.paths;
  EXPECT_EQ(in_short(check(ranged, ones())), "pass");
  ranged.paths["fused"] = ranged.paths["unfused"] = each([](double) { return 4; });  // wrong alike
  const Verdict verdict = check(ranged, ones());
  EXPECT_EQ(in_short(verdict), "invariant y");
  EXPECT_EQ(verdict.finding->stage, 1);
}

TEST_F(Faults, TheFirstClassOfTheListNamesTheFindingAndOthersStandUnderAlso) {
  toy.paths["fused"] = [](const fusediff_call& call) {
    set(call.inputs[0], 3, 0.5);
    for (std::int64_t i = 1; i < count(call.outputs[0]); ++i) set(call.outputs[0], i, 5);
    return FUSEDIFF_OK;
  };
  const Verdict verdict = check(toy, ones());
  EXPECT_EQ(in_short(verdict), "unwritten y");
  EXPECT_TRUE(has(*verdict.finding, FindingClass::kInputChanged));
  EXPECT_TRUE(has(*verdict.finding, FindingClass::kDamage));
  for (std::size_t i = 1; i < verdict.finding->evidence.size(); ++i)
    EXPECT_LE(verdict.finding->evidence[i - 1].cls, verdict.finding->evidence[i].cls);
}

TEST_F(Faults, TheAgainstSideIsAccusedOfItsOwn) {
  toy.paths["unfused"] = [](const fusediff_call& call) {
    set(call.inputs[0], 3, 0.5);
    return each(plus_one)(call);
  };
  const Verdict verdict = check(toy, ones());
  EXPECT_EQ(in_short(verdict), "input_changed x");
  EXPECT_EQ(verdict.finding->evidence[0].accused, Side::kAgainst);
}

TEST_F(Faults, UnsupportedOnOneSideHidesNoCrashOfTheOther) {
  toy.paths["unfused"] = [](const fusediff_call&) { return FUSEDIFF_UNSUPPORTED; };
  EXPECT_EQ(in_short(check(toy, ones())), "skip");
  after([](const fusediff_call& call) { static_cast<float*>(call.outputs[0].data)[-1] = 7; });
  EXPECT_EQ(in_short(check(toy, ones())), "overrun y");
  before([](const fusediff_call&) { raise(SIGFPE); });
  EXPECT_EQ(in_short(check(toy, ones())), "crash");
}

TEST_F(Faults, ATargetThatWillNotOpenIsAnErrorOfTheHarness) {
  toy.open = [] { return FUSEDIFF_FAILED; };
  EXPECT_EQ(in_short(check(toy, ones())), "harness_error");
}

TEST_F(Faults, AnOutputOnItsInput) {
  Toy inplace(one_to_one("", R"(, "inplace": [["y", "x"]])"));
  inplace.paths = toy.paths;
  const Case on = ones(8, R"({"ramp": [0, 7]})", R"(, "layout": {"y": {"on": "x"}})");
  EXPECT_EQ(in_short(check(inplace, on)), "pass");
  inplace.paths["fused"] = [](const fusediff_call& call) {
    each(plus_one)(call);
    if (call.outputs[0].data == call.inputs[0].data) set(call.outputs[0], 0, 9);
    return FUSEDIFF_OK;
  };
  const Verdict verdict = check(inplace, on);
  EXPECT_EQ(in_short(verdict), "damage y");
  EXPECT_FALSE(verdict.finding->notes.empty());
  EXPECT_EQ(in_short(check(inplace, ones(8, R"({"ramp": [0, 7]})"))), "pass");
}

TEST_F(Faults, EqualZerosAreVacuousAndEmptyOutputsToo) {
  const Verdict zeros = check(toy, ones(8, R"({"constant": -1})"));
  EXPECT_EQ(in_short(zeros), "vacuous");
  EXPECT_EQ(zeros.reason, "nearly all zeros or NaN");
  EXPECT_EQ(check(toy, ones(0)).reason, "only empty outputs");
}

}  // namespace
}  // namespace fusediff
