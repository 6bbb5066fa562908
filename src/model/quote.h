// How an error names what it found: quoted, on one line, cut when long; and what would have been right. No JSON, no
// domain words.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fusediff {

// In double quotes, control characters and quotes escaped, invalid UTF-8 replaced, cut to about 80 bytes with "...".
std::string quote(std::string_view text);

// For a terminal: control characters escaped, but the line feeds where `lines` says so; invalid UTF-8 replaced. Not cut.
std::string printable(std::string_view text, bool lines = false);

// One step of a JSON pointer (RFC 6901): "~" and "/" escaped, on one line and cut like a quote.
std::string pointer_part(std::string_view key);

// "\"scor\" is not a role; did you mean \"score\"? legal: activation, score, ..." The nearest is named when at most a
// third of it differs. kind: with its article, e.g. "a role".
std::string not_one_of(std::string_view found, std::string_view kind, std::span<const std::string> legal);

// "a, b, c", or "nothing" for none; cut to the first 40.
std::string list_of(std::span<const std::string> names);

}  // namespace fusediff
