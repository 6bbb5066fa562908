#include "report/issue_words.h"

#include <cctype>
#include <vector>

namespace fusediff {
namespace {

bool is_placeholder(std::string_view words, std::size_t at) {
  return at + 2 < words.size() && words[at] == '{' && std::isdigit(static_cast<unsigned char>(words[at + 1])) != 0 &&
         words[at + 2] == '}';
}

// What {0}, {1}, ... of the pattern stand for in the sentence, each as short as it can be; false where it does not fit.
bool match(std::string_view pattern, std::string_view sentence, std::vector<std::string>& values) {
  while (!pattern.empty() && !is_placeholder(pattern, 0)) {
    if (sentence.empty() || sentence[0] != pattern[0]) return false;
    pattern.remove_prefix(1);
    sentence.remove_prefix(1);
  }
  if (pattern.empty()) return sentence.empty();
  pattern.remove_prefix(3);
  if (pattern.empty()) {
    values.emplace_back(sentence);
    return true;
  }
  for (std::size_t length = 0; length <= sentence.size(); ++length) {
    if (length < sentence.size() && sentence[length] != pattern[0]) continue;
    std::vector<std::string> rest;
    if (!match(pattern, sentence.substr(length), rest)) continue;
    values.emplace_back(sentence.substr(0, length));
    values.insert(values.end(), rest.begin(), rest.end());
    return true;
  }
  return false;
}

std::string filled(std::string_view words, std::span<const std::string> values) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t which = is_placeholder(words, i) ? static_cast<std::size_t>(words[i + 1] - '0') : values.size();
    if (which < values.size()) {
      text += values[which];
      i += 2;
    } else {
      text += words[i];
    }
  }
  return text;
}

}  // namespace

std::string fill_in(std::string_view words, std::initializer_list<std::string> values) {
  return filled(words, {values.begin(), values.size()});
}

std::string told_in(const IssueWords& words, const std::string& sentence) {
  for (const SentenceWords& known : words.sentences) {
    std::vector<std::string> values;
    if (!match(known.from, sentence, values)) continue;
    if (!known.verbatim) {
      for (std::string& value : values) value = told_in(words, value);
    }
    return filled(known.to, values);
  }
  return sentence;
}

}  // namespace fusediff
