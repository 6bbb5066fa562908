// What `fusediff new-target` can write: one line of templates() for each language. A template is a set of files that
// stand in the program as they stand here, where they are built and tested as they are. No option is read here.
#pragma once

#include <span>
#include <string_view>

namespace fusediff {

// The word that the files hold where the name of the new target belongs.
inline constexpr std::string_view kTemplateName = "my_ops";

struct TemplateFile {
  std::string_view path;  // where it goes, with kTemplateName for the name: "my_ops/my_ops.cpp"
  std::string_view (*text)();
  std::string_view about;     // for the list of what was written; "": it is not listed
  bool is_filled_in = false;  // the name, and @PROGRAM_FOLDER@: the folder of this program
};

struct Template {
  std::string_view option;              // that chooses it; "": without one
  std::string_view about;               // of the option
  std::span<const TemplateFile> files;  // the first one's first folder, or the file itself, must not be there yet
  // Commands to go on with, lines that start with two spaces; @DIR@: where the name stands, with a "/" or "".
  std::string_view next;
};

std::span<const Template> templates();

}  // namespace fusediff
