// ISSUE.md of a bundle: a bug report that is ready to paste, with the facts in the order that a maintainer reads. Says
// nothing that does not stand in the bundle.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/bundle.h"

namespace fusediff {

enum class Language { kEnglish, kChinese };
// "en", "zh".
std::optional<Language> language_named(std::string_view name);

// Markdown. Ends with a newline.
std::string issue_text(const Bundle& bundle, Language language);

}  // namespace fusediff
