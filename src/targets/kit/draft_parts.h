// What may be said of a part of an operator, right after it: of an attribute, an input, an output, a decision. For
// schema.h.
#pragma once

#include <string>
#include <string_view>

#include "kit/draft.h"

namespace fusediff {
namespace kit __attribute__((visibility("hidden"))) {

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

}  // namespace )
}  // namespace fusediff
