#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

TEST(SchemaTest, RecordsParseAndNameWhatIsRegistered) {
  const nlohmann::json schema = nlohmann::json::parse(fusediff_target()->schema());
  EXPECT_EQ(schema.at("fusediff_schema"), 1);
  std::set<std::string> names;
  for (const auto& op : schema.at("operators")) {
    const std::string name = op.at("name");
    EXPECT_TRUE(names.insert(name).second) << name;
    fusediff_call call{};
    call.struct_size = sizeof(call);
    call.op = name.c_str();
    for (const std::string path : op.at("paths")) {
      call.path = path.c_str();
      // An empty call of a registered path breaks a rule; an unregistered one is not offered.
      EXPECT_EQ(fusediff_target()->run(nullptr, &call), FUSEDIFF_REJECTED) << name << ":" << path;
    }
  }
  for (const kit::Operator* op : kit::detail::registry().operators) {
    EXPECT_EQ(names.count(op->name), 1u) << op->name;
  }
  EXPECT_STREQ(fusediff_target()->name, "builtin");
  EXPECT_STREQ(fusediff_target()->version, "0.1.0");
}

TEST(SchemaTest, TakesNoOptions) {
  void* context = nullptr;
  EXPECT_EQ(fusediff_target()->open("fast", &context), FUSEDIFF_REJECTED);
  EXPECT_STREQ(fusediff_target()->last_error(), "unknown option \"fast\": this target has none");
}

}  // namespace
}  // namespace fusediff::builtin
