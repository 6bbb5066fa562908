// The text of a record: JSON strings, numbers and objects in the order in which they were said, and the small values
// that a record is made of (dtypes, expressions, bounds). It writes what was said, also twice or wrong: whether a
// record is right is for its reader, who names the place. Not a JSON library: nothing is read here.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fusediff_target.h"
#include "kit/number.h"

namespace fusediff {
namespace kit __attribute__((visibility("hidden"))) {

  enum Dtype : int32_t {
    f64 = FUSEDIFF_F64,
    f32 = FUSEDIFF_F32,
    f16 = FUSEDIFF_F16,
    bf16 = FUSEDIFF_BF16,
    f8e4m3fn = FUSEDIFF_F8E4M3FN,
    f8e5m2 = FUSEDIFF_F8E5M2,
    i64 = FUSEDIFF_I64,
    i32 = FUSEDIFF_I32,
    i16 = FUSEDIFF_I16,
    i8 = FUSEDIFF_I8,
    u8 = FUSEDIFF_U8,
    boolean = FUSEDIFF_BOOL,
  };

  // "..." with everything escaped that JSON wants escaped; other bytes as they are.
  inline std::string json_text(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text) {
      const auto code = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        quoted += {'\\', c};
      } else if (code < 0x20) {
        constexpr char kDigits[] = "0123456789abcdef";
        quoted += {'\\', 'u', '0', '0', kDigits[code >> 4], kDigits[code & 15]};
      } else {
        quoted += c;
      }
    }
    return quoted + '"';
  }

  // The shortest number that reads back as `value`, always with a point or an exponent. JSON has no NaN and no
  // infinity: they become strings, which the reader refuses where they stand.
  inline std::string json_number(double value) {
    char digits[40];
    const std::string text(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
    if (!std::isfinite(value)) {
      return json_text(text);
    }
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }

  // Texts joined to a JSON array.
  inline std::string json_list(const std::vector<std::string>& texts) {
    std::string list;
    for (const std::string& text : texts) {
      list += (list.empty() ? "" : ", ") + text;
    }
    return "[" + list + "]";
  }

  inline std::string json_integers(std::initializer_list<int64_t> values) {
    std::vector<std::string> texts;
    for (const int64_t value : values) {
      texts.push_back(std::to_string(value));
    }
    return json_list(texts);
  }

  inline std::string json_numbers(std::initializer_list<double> values) {
    std::vector<std::string> texts;
    for (const double value : values) {
      texts.push_back(json_number(value));
    }
    return json_list(texts);
  }

  inline std::string json_names(std::initializer_list<std::string_view> names) {
    std::vector<std::string> texts;
    for (const std::string_view name : names) {
      texts.push_back(json_text(name));
    }
    return json_list(texts);
  }

  // An object whose keys stand in the order in which they were set.
  class JsonObject {
   public:
    void set(std::string_view key, std::string json) { members_.emplace_back(json_text(key), std::move(json)); }
    // One more entry of the list `key`.
    void append(std::string_view key, const std::string& json) {
      for (auto& [name, list] : members_) {
        if (name == json_text(key)) {
          list.insert(list.size() - 1, ", " + json);
          return;
        }
      }
      set(key, "[" + json + "]");
    }
    void add(const JsonObject& other) { members_.insert(members_.end(), other.members_.begin(), other.members_.end()); }
    bool empty() const { return members_.empty(); }
    std::string text() const {
      std::string all;
      for (const auto& [key, json] : members_) {
        all += (all.empty() ? "" : ", ") + key + ": " + json;
      }
      return "{" + all + "}";
    }

   private:
    std::vector<std::pair<std::string, std::string>> members_;
  };

  // An integer, or an expression over dims and attributes: 4, "E / G * KG".
  struct Expression {
    template <std::integral T>
    Expression(T value) : json(std::to_string(value)) {}
    Expression(const char* text) : json(json_text(text)) {}
    Expression(const std::string& text) : json(json_text(text)) {}
    std::string json;
  };

  // An end of a range of values: an expression, or a real number.
  struct RangeEnd : Expression {
    using Expression::Expression;
    template <std::floating_point T>
    RangeEnd(T value) : Expression(0) {
      json = json_number(static_cast<double>(value));
    }
  };

  using Shape = std::initializer_list<Expression>;

  inline std::vector<std::string> json_sizes(Shape shape) {
    std::vector<std::string> sizes;
    for (const Expression& size : shape) {
      sizes.push_back(size.json);
    }
    return sizes;
  }

  // f32, or {f32, bf16} to choose from, or same_as("x"): what tensor x got.
  struct DtypeRule {
    DtypeRule(Dtype one) : json(json_text(dtype_name(one))) {}
    DtypeRule(std::initializer_list<Dtype> choices) {
      std::vector<std::string> texts;
      for (const Dtype one : choices) {
        texts.push_back(json_text(dtype_name(one)));
      }
      json = json_list(texts);
    }
    std::string json;

   private:
    friend DtypeRule same_as(std::string_view tensor);
    DtypeRule() = default;
  };

  inline DtypeRule same_as(std::string_view tensor) {
    DtypeRule rule;
    rule.json = json_text("=" + std::string(tensor));
    return rule;
  }

  // A number of ULP: an expression, or one for each dtype: {{f32, "2 * C + 8"}, {bf16, 3}}.
  struct UlpOfDtype {
    Dtype dtype;
    Expression ulp;
  };
  struct Ulp {
    template <std::integral T>
    Ulp(T ulp) : json(Expression(ulp).json) {}
    Ulp(const char* expression) : json(json_text(expression)) {}
    Ulp(std::initializer_list<UlpOfDtype> by_dtype) {
      JsonObject map;
      for (const UlpOfDtype& one : by_dtype) {
        map.set(dtype_name(one.dtype), one.ulp.json);
      }
      json = map.text();
    }
    std::string json;
  };

  // What the ULP of a bound are counted in.
  struct BoundScale {
    std::string json;
    static BoundScale element() { return {json_text("element")}; }
    static BoundScale row_max() { return {json_text("row_max")}; }
    static BoundScale row_abs_sum() { return {json_text("row_abs_sum")}; }
    static BoundScale abs_inputs() { return {json_text("abs_inputs")}; }
    // The sum of products of largest magnitudes; {} is 1: row_max_product({{}, {"x", "rstd"}}).
    static BoundScale row_max_product(std::initializer_list<std::initializer_list<std::string_view>> products) {
      std::vector<std::string> texts;
      for (const auto& factors : products) {
        texts.push_back(json_names(factors));
      }
      JsonObject scale;
      scale.set("row_max_product", json_list(texts));
      return {scale.text()};
    }
  };

  // Names of one side to names of the other: {{"grad_x", "x"}}.
  using NameMap = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  inline std::string json_map(NameMap names) {
    JsonObject map;
    for (const auto& [from, to] : names) {
      map.set(from, json_text(to));
    }
    return map.text();
  }

}  // namespace )
}  // namespace fusediff
