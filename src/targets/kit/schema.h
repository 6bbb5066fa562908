// An operator as a chain of typed calls instead of a JSON text:
//
//   const Operator kSoftsign = op("softsign")
//                                  .dim("R", 0, 64)
//                                  .dim("C", 0, 512, {64, 128})
//                                  .input("x", {"R", "C"}, {f32, bf16}).any_layout()
//                                  .output("y", {"R", "C"}, same_as("x")).stage(1)
//                                  .rows("R")
//                                  .path("fused", fused)
//                                  .path("unfused", unfused);
//
// SCHEMA.md says what each key means. Here it is a method of that name; `int`, `float`, `bool`, `choice` are integer(),
// real(), flag(), text(), as in Call; `if` is when(), `default` by_default(), `=x` same_as("x"), a role a method. What
// says more about an input, an output, ... follows it at once: stage() after an output, and does not compile after an
// input. Names that nothing declares, rules that do not fit and keys said twice are refused when the target is loaded,
// with their place. A record with keys that are not here is written as JSON, see Operator in target.h.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "kit/draft.h"
#include "kit/draft_parts.h"

namespace fusediff {
namespace kit __attribute__((visibility("hidden"))) {

  inline LikeDraft Draft::like(std::string_view target) {
    record_->is_like = true;
    record_->keys.set("like", json_text(target));
    return {*this, record_->narrowed};
  }

  inline Draft Draft::dim(std::string_view name, int64_t low, int64_t high, std::initializer_list<int64_t> typical) {
    JsonObject rule;
    rule.set("range", json_integers({low, high}));
    if (typical.size() != 0) {
      rule.set("typical", json_integers(typical));
    }
    record_->dims.set(name, rule.text());
    return *this;
  }

  inline JsonObject& Draft::attr(std::string_view name, std::string_view kind, std::string rule) {
    JsonObject& attr = record_->attrs.emplace_back();
    attr.set("name", json_text(name));
    attr.set(kind, std::move(rule));
    return attr;
  }
  inline DerivedDraft Draft::integer(std::string_view name, Expression value) {
    return {*this, attr(name, "int", value.json)};
  }
  inline IntegerDraft Draft::integer(std::string_view name, int64_t low, int64_t high) {
    return {*this, attr(name, "int", json_integers({low, high}))};
  }
  inline RealDraft Draft::real(std::string_view name, double low, double high) {
    return {*this, attr(name, "float", json_numbers({low, high}))};
  }
  inline FlagDraft Draft::flag(std::string_view name) { return {*this, attr(name, "bool", "true")}; }
  inline TextDraft Draft::text(std::string_view name, std::initializer_list<std::string_view> choices) {
    return {*this, attr(name, "choice", json_names(choices))};
  }

  inline JsonObject& Draft::tensor(std::deque<detail::TensorRecord> & list, std::string_view name, Shape shape,
                                   const DtypeRule& dtype) {
    detail::TensorRecord& made = list.emplace_back();
    made.name = name;
    made.shape = json_sizes(shape);
    made.keys.set("name", json_text(name));
    made.keys.set("shape", json_list(made.shape));
    made.keys.set("dtype", dtype.json);
    return made.keys;
  }
  inline InputDraft Draft::input(std::string_view name, Shape shape, DtypeRule dtype) {
    return {*this, tensor(record_->inputs, name, shape, dtype)};
  }
  inline GivenDraft Draft::given(std::string_view name, Shape shape, DtypeRule dtype) {
    return {*this, tensor(record_->given, name, shape, dtype)};
  }
  inline OutputDraft Draft::output(std::string_view name, Shape shape, DtypeRule dtype) {
    return {*this, tensor(record_->outputs, name, shape, dtype)};
  }

  inline DecideDraft Draft::decide(std::string_view by, std::string_view pick, Expression count) {
    JsonObject& rule = record_->decide.emplace_back();
    rule.set("by", json_text(by));
    rule.set("pick", json_text(pick));
    rule.set("count", count.json);
    return {*this, rule};
  }

  inline Draft Draft::rows_of(std::string_view dim, std::string inputs, std::string outputs) {
    JsonObject rule;
    rule.set("dim", json_text(dim));
    rule.set("inputs", std::move(inputs));
    rule.set("outputs", std::move(outputs));
    return set("rows", rule.text());
  }

  inline Draft Draft::gradient(std::string_view of, NameMap wrt, NameMap cotangents) {
    JsonObject rule;
    rule.set("of", json_text(of));
    rule.set("wrt", json_map(wrt));
    rule.set("cotangents", json_map(cotangents));
    return set("gradient", rule.text());
  }

  inline Draft Draft::path(std::string_view name, void (*run)(const Call&), size_t (*workspace_bytes)(const Call&)) {
    record_->paths.push_back({detail::kept(std::string(name)), run, workspace_bytes});
    return *this;
  }

  inline Draft::operator Operator() const {
    Operator made{detail::kept(record_->name), detail::kept(schema()), {}};
    for (size_t i = 0; i < std::min(record_->paths.size(), kMaxPaths); ++i) {
      made.paths[i] = record_->paths[i];
    }
    return made;
  }

}  // namespace )
}  // namespace fusediff
