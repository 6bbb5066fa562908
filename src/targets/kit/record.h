// What was said of one operator, and its JSON object. Filled by the chain of schema.h; says nothing by itself.
#pragma once

#include <algorithm>
#include <deque>
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
