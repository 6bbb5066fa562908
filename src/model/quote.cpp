#include "model/quote.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace fusediff {

namespace {

constexpr std::size_t kMaxQuoted = 80;
constexpr std::size_t kMaxListed = 40;
constexpr std::size_t kMaxCompared = 64;  // longer names have no nearest

// Bytes of the UTF-8 sequence at the head of text, 0 when it is not one (RFC 3629; overlong forms of 2 bytes and
// bytes that never occur are told, the rest is left to the terminal).
std::size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

void append_control(std::string& out, char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : "\\u00";
  if (out.ends_with("\\u00")) {
    out += kHex[static_cast<unsigned char>(c) >> 4];
    out += kHex[static_cast<unsigned char>(c) & 15];
  }
}

// Levenshtein distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    if (at >= kMaxQuoted) return out + "...\"";
    const char c = text[at];
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      append_control(out, c);
    } else {
      out += text.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return out + '"';
}

std::string printable(std::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if ((static_cast<unsigned char>(c) < 0x20 && !(lines && c == '\n')) || c == 0x7F) {
      append_control(out, c);
    } else {
      out += text.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string pointer_part(std::string_view key) {
  const std::string quoted = quote(key);
  std::string out;
  for (const char c : std::string_view(quoted).substr(1, quoted.size() - 2)) {
    out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return out;
}

std::string list_of(std::span<const std::string> names) {
  if (names.empty()) return "nothing";
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == kMaxListed) return out + ", ...";
    if (i > 0) out += ", ";
    const std::string quoted = quote(names[i]);
    out += std::string_view(quoted).substr(1, quoted.size() - 2);
  }
  return out;
}

std::string not_one_of(std::string_view found, std::string_view kind, std::span<const std::string> legal) {
  std::string out = quote(found) + " is not " + std::string(kind);
  const std::string* nearest = nullptr;
  std::size_t best = 0;
  for (const std::string& name : legal) {
    if (found.size() > kMaxCompared || name.size() > kMaxCompared) continue;
    const std::size_t apart = distance(found, name);
    const bool close = apart * 3 <= std::max<std::size_t>(name.size(), 3) && apart < name.size();
    if (close && (nearest == nullptr || apart < best)) {
      nearest = &name;
      best = apart;
    }
  }
  if (nearest != nullptr) out += "; did you mean " + quote(*nearest) + "?";
  return out + (nearest != nullptr ? " legal: " : "; legal: ") + list_of(legal);
}

}  // namespace fusediff
