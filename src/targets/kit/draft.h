// The head of the chain of schema.h: what may be said of a whole operator. Its parts are in draft_parts.h; users
// include schema.h.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "kit/record.h"

namespace fusediff {
namespace kit __attribute__((visibility("hidden"))) {

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

}  // namespace )
}  // namespace fusediff
