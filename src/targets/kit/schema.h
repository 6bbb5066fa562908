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
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kit/record_text.h"
#include "kit/target.h"

namespace fusediff {
namespace kit __attribute__((visibility("hidden"))) {

  namespace detail {

  struct TensorRecord {
    std::string name;
    std::vector<std::string> shape;  // each size as JSON
    JsonObject keys;
  };

  // What was said of one operator. Addresses of parts stay valid.
  struct Record {
    std::string name;
    JsonObject keys;  // those that stand alone
    JsonObject dims, narrowed;
    std::deque<JsonObject> attrs, decide;
    std::deque<TensorRecord> inputs, given, outputs;
    std::vector<std::string> row_dims;  // of rows(dim), as JSON
    std::vector<Path> paths;            // their names are kept
    bool is_like = false;

    std::string text() const;
  };

  // Texts that live as long as the library: an Operator points to its texts and does not own them.
  inline const char* kept(std::string text) {
    static std::deque<std::string> texts;
    return texts.emplace_back(std::move(text)).c_str();
  }

  }  // namespace detail

  class RealDraft;
  class DerivedDraft;
  class FlagDraft;
  class IntegerDraft;
  class TextDraft;
  class InputDraft;
  class GivenDraft;
  class OutputDraft;
  class DecideDraft;
  class LikeDraft;

  // A handle of what was said so far: copies share it. Becomes an Operator where one is needed; from then on nothing
  // more may be said.
  class Draft {
   public:
    explicit Draft(std::string_view name) : record_(std::make_shared<detail::Record>()) { record_->name = name; }

    // Takes the record of that name from another target; only what is narrower or more is said then.
    LikeDraft like(std::string_view target);

    // A size, tried from low to high.
    Draft dim(std::string_view name, int64_t low, int64_t high, std::initializer_list<int64_t> typical = {});
    // Attributes, with the names by which a Call reads them.
    DerivedDraft integer(std::string_view name, Expression value);
    IntegerDraft integer(std::string_view name, int64_t low, int64_t high);
    RealDraft real(std::string_view name, double low, double high);
    FlagDraft flag(std::string_view name);
    TextDraft text(std::string_view name, std::initializer_list<std::string_view> choices);
    // A rule that a legal call obeys; may be said many times.
    Draft where(std::string_view expression) {
      record_->keys.append("where", json_text(expression));
      return *this;
    }

    InputDraft input(std::string_view name, Shape shape, DtypeRule dtype);
    GivenDraft given(std::string_view name, Shape shape, DtypeRule dtype);
    OutputDraft output(std::string_view name, Shape shape, DtypeRule dtype);

    // A discrete choice: the best `count` of `by` stand in `pick`.
    DecideDraft decide(std::string_view by, std::string_view pick, Expression count);
    // Rows along the dim are independent: of all tensors that have it in their shape.
    Draft rows(std::string_view dim) {
      record_->row_dims.push_back(json_text(dim));
      return *this;
    }
    // Of these inputs and all outputs; of these inputs and outputs.
    Draft rows(std::string_view dim, std::initializer_list<std::string_view> inputs) {
      return rows_of(dim, json_names(inputs), json_text("all"));
    }
    Draft rows(std::string_view dim, std::initializer_list<std::string_view> inputs,
               std::initializer_list<std::string_view> outputs) {
      return rows_of(dim, json_names(inputs), json_names(outputs));
    }
    // The output may lie on the input; it always does. May be said many times.
    Draft inplace(std::string_view output, std::string_view input) {
      record_->keys.append("inplace", json_names({output, input}));
      return *this;
    }
    Draft always_inplace(std::string_view output, std::string_view input) {
      record_->keys.append("inplace", json_names({output, input, "always"}));
      return *this;
    }
    // wrt: outputs here to forward inputs; cotangents: inputs here to forward outputs.
    Draft gradient(std::string_view of, NameMap wrt, NameMap cotangents);

    Draft not_deterministic() { return set("deterministic", "false"); }
    Draft deterministic_paths(std::initializer_list<std::string_view> paths) {
      return set("deterministic", json_names(paths));
    }
    Draft one_context_each() { return set("threads", json_text("one_context_each")); }
    Draft shared_context() { return set("threads", json_text("shared_context")); }

    Draft path(std::string_view name, void (*run)(const Call&), size_t (*workspace_bytes)(const Call&) = nullptr);
    Draft path(std::string_view name, std::nullptr_t, size_t (*)(const Call&) = nullptr) = delete;

    // The JSON object of this operator.
    std::string schema() const { return record_->text(); }
    operator Operator() const;

   private:
    Draft set(std::string_view key, std::string json) {
      record_->keys.set(key, std::move(json));
      return *this;
    }
    Draft rows_of(std::string_view dim, std::string inputs, std::string outputs);
    JsonObject& attr(std::string_view name, std::string_view kind, std::string rule);
    static JsonObject& tensor(std::deque<detail::TensorRecord>& list, std::string_view name, Shape shape,
                              const DtypeRule& dtype);

    std::shared_ptr<detail::Record> record_;
  };

  inline Draft op(std::string_view name) { return Draft(name); }

  // What says more about the part of a record that was begun last. Self: what it returns to go on from.
  template <class Self>
  class PartDraft : public Draft {
   public:
    PartDraft(const Draft& draft, JsonObject& part) : Draft(draft), part_(&part) {}

   protected:
    Self set(std::string_view key, std::string json) {
      part_->set(key, std::move(json));
      return self();
    }
    Self self() const { return static_cast<const Self&>(*this); }
    JsonObject& part() const { return *part_; }

   private:
    JsonObject* part_;
  };

  class LikeDraft : public PartDraft<LikeDraft> {
   public:
    using PartDraft::PartDraft;
    // Only these of the dtypes that the tensor could have.
    LikeDraft narrow(std::string_view tensor, DtypeRule dtype) { return set(tensor, dtype.json); }
  };

  // An integer that follows from an expression.
  class DerivedDraft : public PartDraft<DerivedDraft> {
   public:
    using PartDraft::PartDraft;
    // Where the expression is false, `otherwise` is passed.
    DerivedDraft when(std::string_view expression, int64_t otherwise) {
      part().set("default", std::to_string(otherwise));
      return set("if", json_text(expression));
    }
  };

  class IntegerDraft : public PartDraft<IntegerDraft> {
   public:
    using PartDraft::PartDraft;
    IntegerDraft by_default(int64_t value) { return set("default", std::to_string(value)); }
    // Single values worth trying.
    IntegerDraft also(std::initializer_list<int64_t> values) { return set("also", json_integers(values)); }
    // Where the expression is false, the default is passed.
    IntegerDraft when(std::string_view expression) { return set("if", json_text(expression)); }
  };

  class RealDraft : public PartDraft<RealDraft> {
   public:
    using PartDraft::PartDraft;
    RealDraft by_default(double value) { return set("default", json_number(value)); }
    RealDraft also(std::initializer_list<double> values) { return set("also", json_numbers(values)); }
    RealDraft log_scale() { return set("scale", json_text("log")); }
    RealDraft when(std::string_view expression) { return set("if", json_text(expression)); }
  };

  class FlagDraft : public PartDraft<FlagDraft> {
   public:
    using PartDraft::PartDraft;
    FlagDraft by_default(bool value) { return set("default", value ? "true" : "false"); }
    FlagDraft when(std::string_view expression) { return set("if", json_text(expression)); }
  };

  class TextDraft : public PartDraft<TextDraft> {
   public:
    using PartDraft::PartDraft;
    TextDraft by_default(std::string_view value) { return set("default", json_text(value)); }
    TextDraft when(std::string_view expression) { return set("if", json_text(expression)); }
  };

  // What inputs and outputs share.
  template <class Self>
  class TensorDraft : public PartDraft<Self> {
   public:
    using PartDraft<Self>::PartDraft;
    Self dense() { return this->set("layout", json_text("dense")); }
    Self inner_dense() { return this->set("layout", json_text("inner_dense")); }
    Self any_layout() { return this->set("layout", json_text("any")); }
    Self align(int64_t bytes) { return this->set("align", std::to_string(bytes)); }
    Self optional() { return this->set("optional", "true"); }
    Self when(std::string_view expression) { return this->set("if", json_text(expression)); }
  };

  // The role index.
  template <class Self>
  class IndexDraft : public Self {
   public:
    explicit IndexDraft(const Self& tensor) : Self(tensor) {}
    IndexDraft distinct() { return say("distinct", "true"); }  // in a row
    IndexDraft sorted() { return say("sorted", "true"); }      // in a row
    // Sentinels outside the range.
    IndexDraft also(std::initializer_list<int64_t> values) { return say("also", json_integers(values)); }

   private:
    IndexDraft say(std::string_view key, std::string json) {
      this->set(key, std::move(json));
      return *this;
    }
  };

  // The role counts.
  template <class Self>
  class CountsDraft : public Self {
   public:
    explicit CountsDraft(const Self& tensor) : Self(tensor) {}
    CountsDraft range(Expression low, Expression high) { return say("range", json_list({low.json, high.json})); }
    CountsDraft sum(Expression sum) { return say("sum", sum.json); }

   private:
    CountsDraft say(std::string_view key, std::string json) {
      this->set(key, std::move(json));
      return *this;
    }
  };

  // What inputs and given tensors share: their values have a role.
  template <class Self>
  class SourceDraft : public TensorDraft<Self> {
   public:
    using TensorDraft<Self>::TensorDraft;
    Self activation() { return role("activation"); }
    Self score() { return role("score"); }
    Self bias() { return role("bias"); }
    Self probability() { return role("probability"); }
    Self scale() { return role("scale"); }
    Self cotangent() { return role("cotangent"); }
    Self mask() { return role("mask"); }
    // low and high are legal indices too.
    IndexDraft<Self> index(Expression low, Expression high) {
      this->part().set("role", json_text("index"));
      return IndexDraft<Self>(this->set("range", json_list({low.json, high.json})));
    }
    CountsDraft<Self> counts() { return CountsDraft<Self>(role("counts")); }
    Self offsets(Expression sum) {
      this->part().set("role", json_text("offsets"));
      return this->set("sum", sum.json);
    }

   private:
    Self role(std::string_view name) { return this->set("role", json_text(name)); }
  };

  class GivenDraft : public SourceDraft<GivenDraft> {
   public:
    using SourceDraft::SourceDraft;
  };

  class InputDraft : public SourceDraft<InputDraft> {
   public:
    using SourceDraft::SourceDraft;
    // An output of another operator; inputs: the producer's to tensors of this operator.
    InputDraft saved(std::string_view producer, std::string_view output, NameMap inputs) {
      JsonObject origin;
      origin.set("op", json_text(producer));
      origin.set("output", json_text(output));
      origin.set("inputs", json_map(inputs));
      part().set("role", json_text("saved"));
      return set("saved", origin.text());
    }
  };

  class OutputDraft : public TensorDraft<OutputDraft> {
   public:
    using TensorDraft::TensorDraft;
    OutputDraft stage(int number) { return set("stage", std::to_string(number)); }
    OutputDraft nan_bits() { return set("nan", json_text("bits")); }

    // True of every correct output; may be said many times. only_if: an expression; "": always.
    OutputDraft always_in_range(RangeEnd low, RangeEnd high, std::string_view only_if = "") {
      return always("range", json_list({low.json, high.json}), only_if);
    }
    OutputDraft always_distinct_in_row(std::string_view only_if = "") {
      return always("distinct_in_row", "true", only_if);
    }
    OutputDraft always_finite_if_inputs_finite(std::string_view only_if = "") {
      return always("finite_if_inputs_finite", "true", only_if);
    }
    OutputDraft always_permutation(std::string_view only_if = "") { return always("permutation", "true", only_if); }
    OutputDraft always_row_sums(double sum, double within, std::string_view only_if = "") {
      return always("row_sums", json_number(sum), only_if, json_number(within));
    }

    OutputDraft agree_bits() { return set("agree", json_text("bits")); }
    // why: cites the derivation.
    OutputDraft agree(Ulp ulp, std::string_view why) {
      JsonObject rule;
      rule.set("ulp", ulp.json);
      rule.set("why", json_text(why));
      return set("agree", rule.text());
    }
    OutputDraft bound(Ulp ulp, BoundScale of, std::string_view why) { return bound_by("", ulp, of, why); }
    // by: the tensor whose dtype chooses from `ulp`.
    OutputDraft bound_by(std::string_view by, Ulp ulp, BoundScale of, std::string_view why) {
      JsonObject rule;
      rule.set("ulp", ulp.json);
      if (!by.empty()) {
        rule.set("by", json_text(by));
      }
      rule.set("of", of.json);
      rule.set("why", json_text(why));
      return set("bound", rule.text());
    }

   private:
    OutputDraft always(std::string_view promise, std::string value, std::string_view only_if, std::string within = "") {
      JsonObject rule;
      rule.set(promise, std::move(value));
      if (!within.empty()) {
        rule.set("within", std::move(within));
      }
      if (!only_if.empty()) {
        rule.set("if", json_text(only_if));
      }
      part().append("always", rule.text());
      return self();
    }
  };

  class DecideDraft : public PartDraft<DecideDraft> {
   public:
    using PartDraft::PartDraft;
    DecideDraft largest() { return word("order", "largest"); }
    DecideDraft smallest() { return word("order", "smallest"); }
    // A flag: true is largest.
    DecideDraft largest_if(std::string_view flag) { return word("order", "=" + std::string(flag)); }
    DecideDraft nan_least() { return word("nan", "least"); }
    DecideDraft nan_greatest() { return word("nan", "greatest"); }
    DecideDraft nan_as_minus_infinity() { return word("nan", "as_-inf"); }
    // Its slot holds `none`.
    DecideDraft nan_never(int64_t none) { return word("nan", "never").none(none); }
    DecideDraft zeros_equal() { return word("zeros", "equal"); }
    DecideDraft zeros_ordered() { return word("zeros", "ordered"); }
    DecideDraft tie_lowest_index() { return word("tie", "lowest_index"); }
    DecideDraft tie_any() { return word("tie", "any"); }
    DecideDraft sorted(bool is_sorted = true) { return set("sorted", is_sorted ? "true" : "false"); }
    // An input with the number of candidates of each row.
    DecideDraft among(std::string_view input) { return word("among", input); }
    // The value of an empty slot.
    DecideDraft none(int64_t value) { return set("none", std::to_string(value)); }
    // An output that equals `by` at the picks.
    DecideDraft values(std::string_view output) { return word("values", output); }

   private:
    DecideDraft word(std::string_view key, std::string_view word) { return set(key, json_text(word)); }
  };

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

  namespace detail {

  // Names of the tensors that have the size in their shape.
  inline std::string names_with(const std::deque<TensorRecord>& tensors, const std::string& size) {
    std::vector<std::string> names;
    for (const TensorRecord& tensor : tensors) {
      if (std::find(tensor.shape.begin(), tensor.shape.end(), size) != tensor.shape.end()) {
        names.push_back(json_text(tensor.name));
      }
    }
    return json_list(names);
  }

  inline std::string text_of(const std::deque<JsonObject>& parts) {
    std::vector<std::string> texts;
    for (const JsonObject& part : parts) {
      texts.push_back(part.text());
    }
    return json_list(texts);
  }

  inline std::string text_of(const std::deque<TensorRecord>& tensors) {
    std::vector<std::string> texts;
    for (const TensorRecord& tensor : tensors) {
      texts.push_back(tensor.keys.text());
    }
    return json_list(texts);
  }

  inline std::string Record::text() const {
    std::vector<std::string> names;
    for (const Path& path : paths) {
      names.push_back(json_text(path.name));
    }
    if (paths.size() > kMaxPaths) {
      names.push_back(json_text("(more paths than an operator of the kit can have)"));  // refused by the reader
    }
    JsonObject all;
    all.set("name", json_text(name));
    all.set("paths", json_list(names));
    const auto add = [&](std::string_view key, const auto& what, const std::string& text) {
      if (!what.empty()) {
        all.set(key, text);
      }
    };
    const auto add_required = [&](std::string_view key, const auto& what, const std::string& text) {
      if (!what.empty() || !is_like) {
        all.set(key, text);
      }
    };
    add_required("dims", dims, dims.text());
    add("attrs", attrs, text_of(attrs));
    add("given", given, text_of(given));
    add_required("inputs", inputs, text_of(inputs));
    add_required("outputs", outputs, text_of(outputs));
    add("dtype", narrowed, narrowed.text());
    add("decide", decide, text_of(decide));
    for (const std::string& dim : row_dims) {
      JsonObject rows;
      rows.set("dim", dim);
      rows.set("inputs", names_with(inputs, dim));
      rows.set("outputs", names_with(outputs, dim));
      all.set("rows", rows.text());
    }
    all.add(keys);
    return all.text();
  }

  }  // namespace detail
}  // namespace )
}  // namespace fusediff
