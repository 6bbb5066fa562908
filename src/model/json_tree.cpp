#include "model/json_tree.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/quote.h"

namespace fusediff {

namespace {

constexpr std::size_t kPairwise = 8;  // up to so many keys are compared one by one

// "at line 1, column 5: what" without the library's prefix, on one line.
std::string parser_words(std::string_view what) {
  const std::size_t bracket = what.find("] ");
  if (bracket != std::string_view::npos) what.remove_prefix(bracket + 2);
  const std::string_view prefix = "parse error at ";
  if (what.starts_with(prefix)) what.remove_prefix(prefix.size());
  std::string words;
  for (const char c : what.substr(0, 300)) words += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return words;
}

}  // namespace

// The events of nlohmann's SAX parser, which is iterative: depth is ours to limit.
struct JsonTreeBuilder {
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  JsonTree& tree;
  const JsonLimits& limits;
  std::vector<std::uint32_t> open;  // containers around the next value
  std::vector<std::uint32_t> last;  // the last child of each
  std::string_view next_key;
  std::string error;

  bool fail(std::string what) {
    if (error.empty()) error = std::move(what);
    return false;
  }

  // A copy that stays: the room was reserved, and no decoded string is longer than its source.
  std::string_view keep(const std::string& text) {
    const std::size_t at = tree.characters_.size();
    tree.characters_.insert(tree.characters_.end(), text.begin(), text.end());
    return {tree.characters_.data() + at, text.size()};
  }

  JsonNode* add(JsonKind kind) {
    if (tree.nodes_.size() >= limits.nodes) {
      fail("more than " + std::to_string(limits.nodes) + " values");
      return nullptr;
    }
    const auto at = static_cast<std::uint32_t>(tree.nodes_.size());
    JsonNode& node = tree.nodes_.emplace_back();
    node.kind = kind;
    if (open.empty()) return &node;
    JsonNode& parent = tree.nodes_[open.back()];
    node.parent = open.back();
    node.index = parent.count++;
    node.key = next_key;
    next_key = {};
    if (last.back() == JsonNode::kNone) {
      parent.first = at;
    } else {
      tree.nodes_[last.back()].next = at;
    }
    last.back() = at;
    return &node;
  }

  bool enter(JsonKind kind) {
    if (open.size() >= static_cast<std::size_t>(limits.nesting)) {
      return fail("nested deeper than " + std::to_string(limits.nesting));
    }
    if (add(kind) == nullptr) return false;
    open.push_back(static_cast<std::uint32_t>(tree.nodes_.size() - 1));
    last.push_back(JsonNode::kNone);
    return true;
  }

  bool leave() {
    open.pop_back();
    last.pop_back();
    return true;
  }

  bool null() { return add(JsonKind::kNull) != nullptr; }
  bool boolean(bool value) {
    JsonNode* node = add(JsonKind::kBool);
    if (node != nullptr) node->integer = value ? 1 : 0;
    return node != nullptr;
  }
  bool number_integer(number_integer_t value) {
    JsonNode* node = add(JsonKind::kInteger);
    if (node != nullptr) node->integer = value;
    return node != nullptr;
  }
  bool number_unsigned(number_unsigned_t value) {
    JsonNode* node = add(JsonKind::kUnsigned);
    if (node != nullptr) node->unsigned_one = value;
    return node != nullptr;
  }
  bool number_float(number_float_t value, const string_t& text) {
    JsonNode* node = add(JsonKind::kReal);
    if (node == nullptr) return false;
    node->real = value;
    node->text = keep(text);
    return true;
  }
  bool string(string_t& text) {
    JsonNode* node = add(JsonKind::kString);
    if (node != nullptr) node->text = keep(text);
    return node != nullptr;
  }
  bool binary(binary_t&) { return fail("binary data"); }
  bool start_object(std::size_t) { return enter(JsonKind::kObject); }
  bool start_array(std::size_t) { return enter(JsonKind::kArray); }
  bool end_array() { return leave(); }
  bool key(string_t& text) {
    next_key = keep(text);
    return true;
  }

  // The key that stands twice, or null data.
  std::string_view repeated_key(const JsonNode& object) const {
    std::vector<std::string_view> keys;
    for (std::uint32_t at = object.first; at != JsonNode::kNone; at = tree.nodes_[at].next) {
      if (object.count > kPairwise) {
        keys.push_back(tree.nodes_[at].key);
        continue;
      }
      for (std::uint32_t other = object.first; other != at; other = tree.nodes_[other].next) {
        if (tree.nodes_[other].key == tree.nodes_[at].key) return tree.nodes_[at].key;
      }
    }
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    return twice == keys.end() ? std::string_view() : *twice;
  }

  bool end_object() {
    const std::string_view twice = repeated_key(tree.nodes_[open.back()]);
    if (twice.data() != nullptr) {
      return fail(JsonView(&tree, open.back()).pointer() + ": the key " + quote(twice) + " stands twice");
    }
    return leave();
  }

  template <typename Exception>
  bool parse_error(std::size_t, const std::string&, const Exception& exception) {
    return fail("not JSON: " + parser_words(exception.what()));
  }
};

Result<JsonTree> JsonTree::parse(std::string_view json, const JsonLimits& limits) {
  if (json.size() > limits.bytes) {
    return user_error(std::to_string(json.size()) + " bytes of JSON; at most " + std::to_string(limits.bytes));
  }
  JsonTree tree;
  tree.nodes_.reserve(std::min<std::size_t>(json.size() / 8 + 4, limits.nodes));
  tree.characters_.reserve(json.size() + 1);
  JsonTreeBuilder builder{tree, limits, {}, {}, {}, {}};
  builder.open.reserve(16);
  builder.last.reserve(16);
  const bool read = nlohmann::json::sax_parse(json.begin(), json.end(), &builder);
  if (!read || !builder.error.empty()) {
    return user_error(builder.error.empty() ? "not JSON" : std::move(builder.error));
  }
  return tree;
}

const JsonNode& JsonView::node() const { return tree_->node(at_); }

JsonView::Iterator& JsonView::Iterator::operator++() {
  at_ = tree_->node(at_).next;
  return *this;
}

std::optional<JsonView> JsonView::find(std::string_view name) const {
  for (std::uint32_t at = node().first; at != JsonNode::kNone; at = tree_->node(at).next) {
    if (tree_->node(at).key == name) return JsonView(tree_, at);
  }
  return std::nullopt;
}

std::string JsonView::pointer() const {
  std::vector<std::uint32_t> path;
  for (std::uint32_t at = at_; tree_->node(at).parent != JsonNode::kNone; at = tree_->node(at).parent) {
    path.push_back(at);
  }
  std::string out;
  for (auto at = path.rbegin(); at != path.rend(); ++at) {
    const JsonNode& step = tree_->node(*at);
    out += '/';
    if (tree_->node(step.parent).kind == JsonKind::kArray) {
      out += std::to_string(step.index);
      continue;
    }
    out += pointer_part(step.key);
  }
  return out;
}

}  // namespace fusediff
