// The word that a misspelt one was meant to be.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fusediff {

// Insertions, deletions, replacements and swaps of neighbours that turn a into b (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// The word of the list with the smallest edit distance, the first of equals; "" when none is near: more than a third
// of the letters (at least two edits) would have to change.
std::string nearest_word(std::string_view word, const std::vector<std::string>& words);

}  // namespace fusediff
