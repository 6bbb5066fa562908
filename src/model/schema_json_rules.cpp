// What an operator says over several tensors: decide, rows, inplace, gradient.
#include "model/schema_read.h"

namespace fusediff {

namespace {

constexpr SpellingTable<NanOrder, 4> kNanOrders = {{{"least", NanOrder::kLeast},
                                                    {"greatest", NanOrder::kGreatest},
                                                    {"as_-inf", NanOrder::kAsMinusInf},
                                                    {"never", NanOrder::kNever}}};

void read_order(const JsonView& at, JsonTrouble& trouble, DecideRule& rule) {
  if (at.is(JsonKind::kString) && at.text().starts_with('=')) {
    rule.order = Order::kByAttr;
    rule.order_attr = std::string(at.text().substr(1));
    return;
  }
  rule.order = read_spelling(at, trouble, "an order (largest, smallest, or =attribute)",
                             SpellingTable<Order, 2>{{{"largest", Order::kLargest}, {"smallest", Order::kSmallest}}});
}

DecideRule read_decision(const JsonView& at, JsonTrouble& trouble) {
  DecideRule rule;
  JsonObject object(at, trouble, "a decision");
  if (const auto value = object.need("by")) rule.by = read_identifier(*value, trouble, "a tensor");
  if (const auto value = object.need("pick")) rule.pick = read_identifier(*value, trouble, "an output");
  if (const auto value = object.need("count")) rule.count = read_expr(*value, trouble);
  if (const auto value = object.find("order")) read_order(*value, trouble, rule);
  if (const auto value = object.find("nan")) rule.nan = read_spelling(*value, trouble, "an order of NaN", kNanOrders);
  if (const auto value = object.find("zeros")) {
    rule.zeros_equal = read_spelling(*value, trouble, "an order of zeros",
                                     SpellingTable<bool, 2>{{{"equal", true}, {"ordered", false}}});
  }
  if (const auto value = object.find("tie")) {
    rule.tie_lowest_index =
        read_spelling(*value, trouble, "a tie rule", SpellingTable<bool, 2>{{{"lowest_index", true}, {"any", false}}});
  }
  if (const auto value = object.find("sorted")) rule.sorted = read_bool(*value, trouble);
  if (const auto value = object.find("among")) rule.among = read_identifier(*value, trouble, "an input");
  if (const auto value = object.find("none")) {
    rule.none = read_integer(*value, trouble, "the value of an empty slot");
    rule.has_none = true;
  }
  if (const auto value = object.find("values")) rule.values = read_identifier(*value, trouble, "an output");
  if (rule.nan == NanOrder::kNever && !rule.has_none) {
    trouble.at(at, "\"nan\": \"never\" leaves slots empty, so \"none\" must say their value");
  }
  object.finish();
  return rule;
}

InplaceRule read_inplace_rule(const JsonView& at, JsonTrouble& trouble) {
  InplaceRule rule;
  if (!expect_array(at, trouble, "an inplace rule ([output, input] or [output, input, \"always\"])", 2, 3)) return rule;
  auto item = at.begin();
  rule.output = read_identifier(*item, trouble, "an output");
  rule.input = read_identifier(*++item, trouble, "an input");
  if (at.size() == 3) {
    rule.always = read_spelling(*++item, trouble, "a third entry", SpellingTable<bool, 1>{{{"always", true}}});
  }
  return rule;
}

std::map<std::string, std::string> read_map(const JsonView& at, JsonTrouble& trouble, std::string_view what) {
  std::map<std::string, std::string> map;
  if (!expect_object(at, trouble, what)) return map;
  for (const JsonView item : at) map.emplace(item.key(), read_identifier(item, trouble, "a tensor"));
  return map;
}

}  // namespace

std::vector<DecideRule> read_decide(const JsonView& at, JsonTrouble& trouble) {
  std::vector<DecideRule> rules;
  if (!expect_array(at, trouble, "a list of decisions")) return rules;
  for (const JsonView item : at) rules.push_back(read_decision(item, trouble));
  return rules;
}

RowsRule read_rows(const JsonView& at, JsonTrouble& trouble) {
  RowsRule rule;
  JsonObject object(at, trouble, "a rows rule");
  if (const auto dim = object.need("dim")) rule.dim = read_identifier(*dim, trouble, "a dim");
  if (const auto inputs = object.need("inputs")) rule.inputs = read_names(*inputs, trouble, "an input");
  if (const auto outputs = object.need("outputs")) {
    rule.all_outputs = outputs->is(JsonKind::kString);
    if (rule.all_outputs) {
      read_spelling(*outputs, trouble, "a list of outputs", SpellingTable<bool, 1>{{{"all", true}}});
    } else {
      rule.outputs = read_names(*outputs, trouble, "an output");
    }
  }
  object.finish();
  return rule;
}

std::vector<InplaceRule> read_inplace(const JsonView& at, JsonTrouble& trouble) {
  std::vector<InplaceRule> rules;
  if (!expect_array(at, trouble, "a list of inplace rules")) return rules;
  for (const JsonView item : at) rules.push_back(read_inplace_rule(item, trouble));
  return rules;
}

GradientRule read_gradient(const JsonView& at, JsonTrouble& trouble) {
  GradientRule rule;
  JsonObject object(at, trouble, "a gradient rule");
  if (const auto of = object.need("of")) rule.of = read_string(*of, trouble, "an operator");
  if (const auto wrt = object.need("wrt")) {
    rule.wrt = read_map(*wrt, trouble, "a map from gradient outputs to forward inputs");
  }
  if (const auto cotangents = object.need("cotangents")) {
    rule.cotangents = read_map(*cotangents, trouble, "a map from inputs here to forward outputs");
  }
  object.finish();
  return rule;
}

}  // namespace fusediff
