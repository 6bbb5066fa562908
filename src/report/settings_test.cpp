#include "report/settings.h"

#include <gtest/gtest.h>

namespace fusediff {
namespace {

TEST(Settings, AreReadFromTheEnvironment) {
  const Settings settings = settings_of(R"({"target": {"file": "a.so", "options": "x y", "isolated": true,
      "variables": ["A=1", "B="]}, "against": {"file": "b.py", "isolated": true}})");
  EXPECT_EQ(settings[0], (SideSettings{"x y", true, {"A=1", "B="}, false}));
  EXPECT_EQ(settings[1], (SideSettings{"", true, {}, true}));
}

TEST(Settings, WhatIsDamagedOrOlderIsAsIfNobodyHadGivenIt) {
  for (const char* environment :
       {"", "no JSON", "[]", R"({"target": 1})", R"({"target": {"file": "a.so"}, "against": null})",
        R"({"target": {"options": 3, "isolated": "yes", "variables": {"A": 1}}})", R"({"target": {"variables": [1]}})"})
    EXPECT_EQ(settings_of(environment), Settings()) << environment;
}

TEST(Settings, WordsSayNothingThatIsAsUsual) {
  Settings settings;
  EXPECT_EQ(setting_words(settings, true), "");
  settings[1] = {"x", true, {}, false};
  EXPECT_EQ(setting_words(settings, false), "");
  EXPECT_EQ(setting_words(settings, true), " --isolate --against-option x");
  settings[0] = {"", true, {"A=b c"}, false};
  EXPECT_EQ(setting_words(settings, false), " --target-env 'A=b c'") << "a variable isolates";
}

}  // namespace
}  // namespace fusediff
