// A JSON text as a tree of views, read with limits, and strict readers over it: the first trouble is kept, with the
// JSON pointer and what would be legal. For texts that people and targets write; nothing here knows what they mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace fusediff {

enum class JsonKind : std::uint8_t { kNull, kBool, kInteger, kUnsigned, kReal, kString, kArray, kObject };

struct JsonLimits {
  std::size_t bytes;    // of the text
  int nesting;          // of arrays and objects
  std::uint32_t nodes;  // values in all
};

struct JsonNode {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  JsonKind kind = JsonKind::kNull;
  std::uint32_t parent = kNone;
  std::uint32_t first = kNone;  // child
  std::uint32_t next = kNone;   // sibling
  std::uint32_t index = 0;      // among its siblings
  std::uint32_t count = 0;      // children
  std::string_view key;         // in an object
  std::string_view text;        // kString: decoded; kReal: as written
  union {
    std::int64_t integer = 0;    // kInteger (negative ones), kBool
    std::uint64_t unsigned_one;  // kUnsigned
    double real;                 // kReal: finite
  };
};

class JsonTree;

// One value of a tree. Valid as long as the tree.
class JsonView {
 public:
  JsonView() = default;
  JsonView(const JsonTree* tree, std::uint32_t at) : tree_(tree), at_(at) {}

  JsonKind kind() const { return node().kind; }
  bool is(JsonKind kind) const { return node().kind == kind; }
  std::string_view key() const { return node().key; }
  std::string_view text() const { return node().text; }
  std::size_t size() const { return node().count; }
  const JsonNode& node() const;
  // RFC 6901, of this value in its tree; "" for the root. Keys are escaped and cut so that it stays on one line.
  std::string pointer() const;
  // What stands here, for an error: a string or number itself, else "an object", ...
  std::string found() const;
  // The member of that name.
  std::optional<JsonView> find(std::string_view name) const;

  class Iterator {
   public:
    using value_type = JsonView;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    Iterator(const JsonTree* tree, std::uint32_t at) : tree_(tree), at_(at) {}
    JsonView operator*() const { return {tree_, at_}; }
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const JsonTree* tree_;
    std::uint32_t at_;
  };
  Iterator begin() const { return {tree_, node().first}; }
  Iterator end() const { return {tree_, JsonNode::kNone}; }

 private:
  const JsonTree* tree_ = nullptr;
  std::uint32_t at_ = 0;
};

class JsonTree {
 public:
  JsonTree(JsonTree&&) noexcept = default;
  JsonTree& operator=(JsonTree&&) noexcept = default;

  // Refuses what is not JSON (RFC 8259, UTF-8), a key that stands twice in an object, and what passes a limit.
  static Result<JsonTree> parse(std::string_view json, const JsonLimits& limits);
  JsonView root() const { return {this, 0}; }
  const JsonNode& node(std::uint32_t at) const { return nodes_[at]; }

 private:
  friend struct JsonTreeBuilder;
  JsonTree() = default;
  std::vector<JsonNode> nodes_;
  std::vector<char> characters_;  // all decoded strings
};

// The first thing that is wrong; later ones are dropped. Readers return something harmless after trouble.
class JsonTrouble {
 public:
  void at(const JsonView& where, std::string_view what);
  void at(const std::string& pointer, std::string_view what);
  bool any() const { return error_.has_value(); }
  // REQUIRES: any().
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

// what: with its article, e.g. "a size", for the error "-1 is not a size".
std::int64_t read_integer(const JsonView& value, JsonTrouble& trouble, std::string_view what,
                          std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                          std::int64_t high = std::numeric_limits<std::int64_t>::max());
std::uint64_t read_unsigned(const JsonView& value, JsonTrouble& trouble, std::string_view what);
// Integers are numbers too. Always finite.
double read_number(const JsonView& value, JsonTrouble& trouble, std::string_view what);
bool read_bool(const JsonView& value, JsonTrouble& trouble);
std::string read_string(const JsonView& value, JsonTrouble& trouble, std::string_view what);
// A letter or _, then letters, digits and _, at most 128.
std::string read_identifier(const JsonView& value, JsonTrouble& trouble, std::string_view what);
bool is_identifier(std::string_view text);
// Is it an array (object) of low to high items?
bool expect_array(const JsonView& value, JsonTrouble& trouble, std::string_view what, std::size_t low = 0,
                  std::size_t high = std::numeric_limits<std::size_t>::max());
bool expect_object(const JsonView& value, JsonTrouble& trouble, std::string_view what);

// Members of an object by name; finish() refuses those that nobody asked for.
class JsonObject {
 public:
  JsonObject(const JsonView& value, JsonTrouble& trouble, std::string_view what);
  std::optional<JsonView> find(std::string_view key);
  // Trouble, and nothing, when it is missing.
  std::optional<JsonView> need(std::string_view key);
  void finish();

 private:
  JsonView value_;
  JsonTrouble& trouble_;
  bool fine_;
  std::vector<std::string_view> asked_;
  std::size_t used_ = 0;
};

}  // namespace fusediff
