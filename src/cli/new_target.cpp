// fusediff new-target: a target to start from.
#include "cli/new_target.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "base/files.h"
#include "cli/options.h"
#include "model/quote.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 64;

OptionSet options() {
  OptionSet set;
  set.usage = "fusediff new-target NAME [--python] [--dir DIR]";
  set.about =
      "Writes the folder NAME: a target in C++ of one operator in two paths that builds, has a test, and is clean as\n"
      "it stands. Its headers go along, so that it needs nothing of fusediff to build. With --python it is the one\n"
      "file NAME.py. Nothing that is there is overwritten. Exit code: 0 written, 2 the name is no identifier, is\n"
      "taken, or cannot be written there.";
  set.example =
      "  fusediff new-target my_ops --dir mine\n"
      "  g++ -std=c++20 -O2 -shared -fPIC -Imine/my_ops/fusediff mine/my_ops/my_ops.cpp -o my_ops.so\n"
      "  fusediff fuzz --target ./my_ops.so --time 10 --out reports/my_ops\n"
      "  fusediff new-target my_ops --python && fusediff fuzz --target my_ops.py --time 10\n";
  set.rest = "NAME";
  set.shown.add_options()("help", "this text");
  set.shown.add_options()("dir", po::value<std::string>()->value_name("DIR"), "where it goes (the current folder)");
  for (const Template& one : templates()) {
    if (one.option.empty()) continue;
    set.shown.add_options()(std::string(one.option).c_str(), po::bool_switch(), std::string(one.about).c_str());
  }
  return set;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_target_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = std::min(text.find(from, at), text.size());
    all.append(text.substr(at, next - at));
    if (next < text.size()) all.append(to);
    at = next + from.size();
  }
  return all;
}

// As a word of a shell.
std::string shell_word(const std::string& text) {
  const bool plain = std::all_of(
      text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '/' || c == '-'; });
  return plain ? text : "'" + replaced(text, "'", "'\\''") + "'";
}

class Writer {
 public:
  Writer(const Template& files, std::string name, fs::path dir)
      : template_(files), name_(std::move(name)), dir_(std::move(dir)) {}

  // Everything or nothing of it; the folder that it goes into is made where it is missing, and stays.
  Status write() const {
    const fs::path top = dir_ / *path_of(template_.files.front()).begin();
    std::error_code code;
    if (fs::symlink_status(top, code).type() != fs::file_type::not_found) {
      return user_error(top.string() +
                        (code ? ": cannot be looked at: " + code.message()
                              : ": is there already; another name, or another folder with --dir, is right"));
    }
    for (const TemplateFile& file : template_.files) {
      Status written = write(file);
      if (written.ok()) continue;
      fs::remove_all(top, code);
      return written;
    }
    return {};
  }

  void say_what_was_written(std::ostream& out) const {
    std::size_t width = 0;
    for (const TemplateFile& file : template_.files) {
      if (!file.about.empty()) width = std::max(width, shown(file).size());
    }
    for (const TemplateFile& file : template_.files) {
      if (file.about.empty()) continue;
      const std::string path = shown(file);
      out << path << std::string(width - path.size() + 2, ' ') << filled(file.about) << "\n";
    }
    const std::string dir = (dir_ / "").string();
    out << "\nnext:\n"
        << printable(replaced(filled(template_.next), "@DIR@", dir.empty() ? dir : shell_word(dir)), true);
  }

 private:
  std::string filled(std::string_view text) const { return replaced(text, kTemplateName, name_); }
  fs::path path_of(const TemplateFile& file) const { return filled(file.path); }
  std::string shown(const TemplateFile& file) const { return printable((dir_ / path_of(file)).string()); }

  Status write(const TemplateFile& file) const {
    const fs::path path = dir_ / path_of(file);
    if (Status made = make_directories(path.parent_path()); !made.ok() && path.has_parent_path()) return made;
    if (!file.is_filled_in) return write_file(path, file.text());
    return write_file(path, replaced(filled(file.text()), "@PROGRAM_FOLDER@", program_folder().string()));
  }

  const Template& template_;
  std::string name_;
  fs::path dir_;
};

const Template& chosen(const po::variables_map& values) {
  const Template* found = &templates().front();
  for (const Template& one : templates()) {
    if (!one.option.empty() && values[std::string(one.option)].as<bool>()) found = &one;
  }
  return *found;
}

}  // namespace

int run_new_target(const Arguments& arguments) {
  const OptionSet set = options();
  const auto parsed = parse_options(set, arguments);
  if (!parsed.ok()) return fail(parsed.error());
  if (!*parsed) return kExitClean;
  const std::vector<std::string> names = rest_of(**parsed);
  if (names.size() != 1) {
    return fail(user_error("new-target: " + std::to_string(names.size()) + " names are given; one is right"));
  }
  const std::string& name = names.front();
  if (!is_target_name(name)) {
    return fail(user_error("new-target: " + quote(name) + " cannot name a target: letters, digits and _ can, at most " +
                           std::to_string(kLongestName) + ", a digit not first"));
  }
  const fs::path dir = (*parsed)->count("dir") != 0 ? (**parsed)["dir"].as<std::string>() : "";
  const Writer writer(chosen(**parsed), name, dir);
  if (Status written = writer.write(); !written.ok()) return fail(written.error());
  writer.say_what_was_written(std::cout);
  return kExitClean;
}

}  // namespace fusediff
