#include "target/target.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <exception>
#include <system_error>
#include <utility>

#include "model/schema_json.h"
#include "target/float_state.h"
#include "target/nearest.h"
#include "target/shared_object.h"

namespace fusediff {
namespace {

constexpr std::string_view kLibrary = ".so";
constexpr std::string_view kPython = ".py";
constexpr std::array kSuffixes = {kLibrary, kPython};
// The interpreter is the user's choice, one side's too: FUSEDIFF_PYTHON.
constexpr const char* kStartPython = "exec \"${FUSEDIFF_PYTHON:-python3}\" \"$0\" \"$@\"";

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(kLibrary) || name.ends_with(kPython);
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

Error wrong(const std::filesystem::path& file, const std::string& what) {
  return user_error(file.string() + ": " + what);
}

// Runs a function of the library that has no way to report; an exception is the library's mistake.
template <typename Function>
Result<const char*> text_of(const std::filesystem::path& file, const char* name, Function function) {
  try {
    return function();
  } catch (const std::exception& thrown) {
    return wrong(file, std::string(name) + "() threw " + one_line(thrown.what()));
  } catch (...) {
    return wrong(file, std::string(name) + "() threw an exception");
  }
}

using Entry = const fusediff_target_v1* (*)();

Result<const fusediff_target_v1*> table_of(const std::filesystem::path& file) {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    return user_error(one_line(std::string(why == nullptr ? "dlopen failed" : why)) + " (" + file.string() + ")");
  }
  // The library stays loaded also when it is refused: what its initialisers started may still run.
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, "fusediff_target"));
  if (entry == nullptr) return wrong(file, "is no fusediff target: it does not export fusediff_target()");
  const fusediff_target_v1* table = nullptr;
  auto called = text_of(file, "fusediff_target", [&] {
    table = entry();
    return "";
  });
  if (!called.ok()) return called.error();
  if (table == nullptr) return wrong(file, "fusediff_target() returned NULL");
  return table;
}

// Reads no member before the size of the struct is known.
Status check_table(const std::filesystem::path& file, const fusediff_target_v1& table) {
  if (table.abi_version != FUSEDIFF_ABI_VERSION) {
    return wrong(file, "has ABI version " + std::to_string(table.abi_version) + ", this fusediff reads version " +
                           std::to_string(FUSEDIFF_ABI_VERSION));
  }
  if (table.struct_size < sizeof(fusediff_target_v1)) {
    return wrong(file, "struct_size is " + std::to_string(table.struct_size) + ", ABI version 1 has " +
                           std::to_string(sizeof(fusediff_target_v1)) + " bytes: set sizeof(fusediff_target_v1)");
  }
  const std::pair<const char*, bool> required[] = {
      {"name", table.name != nullptr}, {"version", table.version != nullptr}, {"schema", table.schema != nullptr},
      {"open", table.open != nullptr}, {"close", table.close != nullptr},     {"run", table.run != nullptr},
  };
  for (const auto& [member, there] : required) {
    if (!there) return wrong(file, std::string("fusediff_target_v1.") + member + " is NULL, it is required");
  }
  const int own_memory = (table.alloc != nullptr ? 1 : 0) + (table.release != nullptr ? 1 : 0) +
                         (table.write != nullptr ? 1 : 0) + (table.read != nullptr ? 1 : 0);
  if (own_memory != 0 && own_memory != 4) {
    return wrong(file, "alloc, release, write and read must be given all four or none, " + std::to_string(own_memory) +
                           " of them are");
  }
  return {};
}

}  // namespace

Result<const fusediff_target_v1*> load_table(const std::filesystem::path& file) {
  if (auto status = check_shared_object(file); !status.ok()) return status.error();
  const auto table = table_of(file);
  if (!table.ok()) return table.error();
  if (auto status = check_table(file, **table); !status.ok()) return status.error();
  return table;
}

const char* (*find_note(const std::filesystem::path& file))() {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<const char* (*)()>(::dlsym(library, "fusediff_note"));
}

TargetLoader::TargetLoader(std::vector<std::filesystem::path> folders) : folders_(std::move(folders)) {}

std::vector<std::string> TargetLoader::available() const {
  std::vector<std::string> names;
  for (const auto& folder : folders_) {
    std::error_code error;
    std::filesystem::directory_iterator at(folder, error);
    for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
      std::error_code ignored;
      const bool one = std::find(kSuffixes.begin(), kSuffixes.end(), at->path().extension()) != kSuffixes.end();
      if (one && at->is_regular_file(ignored)) names.push_back(at->path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<std::filesystem::path> TargetLoader::find(std::string_view name) const {
  std::error_code error;
  if (name.empty()) return user_error("a target has no name: give a NAME or the path of a library");
  std::filesystem::path file;
  if (is_path(name)) {
    file = std::filesystem::path(name);
    if (!std::filesystem::exists(file, error)) return user_error(std::string(name) + ": there is no such library or Python file");
  } else {
    for (const auto& folder : folders_) {
      for (const std::string_view suffix : kSuffixes) {
        const auto candidate = folder / (std::string(name) + std::string(suffix));
        if (file.empty() && std::filesystem::exists(candidate, error)) file = candidate;
      }
    }
  }
  if (file.empty()) {
    const auto names = available();
    const std::string near = nearest_word(name, names);
    std::string what = "there is no target '" + std::string(name) + "'";
    if (!near.empty()) {
      what += ", the nearest is '" + near + "'";
    } else if (!names.empty()) {
      what += ", there are " + joined(names);
    } else {
      what += ", no folder of targets holds any";
    }
    return user_error(what + "; a library elsewhere is named by its path");
  }
  auto canonical = std::filesystem::canonical(file, error);
  if (error) return user_error(file.string() + ": " + error.message());
  return canonical;
}

Result<Schema> TargetLoader::read_schema(const std::filesystem::path& file, const char* text) {
  std::string like_failed;  // why a lookup came back empty: the schema reader cannot know
  const auto lookup = [&](std::string_view other) -> const Schema* {
    const auto loaded = load(other);
    if (loaded.ok()) return &(*loaded)->schema;
    like_failed = " (" + loaded.error().what + ")";
    return nullptr;
  };
  loading_.push_back(file);
  auto schema = parse_schema(text, lookup);
  loading_.pop_back();
  if (!schema.ok()) {
    return Error{schema.error().blame, file.string() + ": schema: " + one_line(schema.error().what) + like_failed};
  }
  return schema;
}

Result<std::unique_ptr<Target>> TargetLoader::open_library(const std::filesystem::path& file) {
  const auto table = load_table(file);
  if (!table.ok()) return table.error();
  const auto text = text_of(file, "schema", [&] { return (*table)->schema(); });
  if (!text.ok()) return text.error();
  if (*text == nullptr) return wrong(file, "schema() returned NULL");
  auto schema = read_schema(file, *text);
  if (!schema.ok()) return schema.error();
  auto target = std::make_unique<Target>();
  target->name = (*table)->name;
  target->version = (*table)->version;
  target->schema = *std::move(schema);
  target->abi = *table;
  target->note = find_note(file);
  return target;
}

// A Python file is served by an interpreter that runs host.py, a library by fusediff-host.
Result<HostCommand> TargetLoader::host_command(const std::filesystem::path& file) const {
  const bool python = file.extension() == kPython;
  std::error_code error;
  for (const auto& folder : folders_) {
    const auto program = python ? folder / "python" / "host.py" : folder.parent_path() / "fusediff-host";
    if (!std::filesystem::exists(program, error)) continue;
    HostCommand command;
    command.what = file.string();
    if (python) {
      command.program = "/bin/sh";
      command.arguments = {"-c", kStartPython, program.string(), file.string()};
    } else {
      command.program = program.string();
      command.arguments = {file.string()};
    }
    return command;
  }
  return user_error(file.string() + ": nothing can run it in a process of its own: no folder of targets has " +
                    (python ? "python/host.py" : "fusediff-host beside it"));
}

Result<std::unique_ptr<Target>> TargetLoader::open_host(const std::filesystem::path& file, const LoadOptions& how) {
  auto command = host_command(file);
  if (!command.ok()) return command.error();
  command->environment = how.environment;
  auto host = Host::start(*std::move(command));
  if (!host.ok()) return host.error();
  auto schema = read_schema(file, (*host)->schema().c_str());
  if (!schema.ok()) return schema.error();
  auto target = std::make_unique<Target>();
  target->name = (*host)->name();
  target->version = (*host)->version();
  target->schema = *std::move(schema);
  target->host = *std::move(host);
  return target;
}

Result<const Target*> TargetLoader::load(std::string_view name_or_path, const LoadOptions& how) {
  auto file = find(name_or_path);
  if (!file.ok()) return file.error();
  const bool hosted = how.isolate || !how.environment.empty() || file->extension() == kPython;
  std::string key = file->string() + "\n" + how.options + (hosted ? "\nhosted" : "");
  for (const std::string& line : how.environment) key += "\n" + line;
  if (const auto at = loaded_.find(key); at != loaded_.end()) return at->second.get();
  if (std::find(loading_.begin(), loading_.end(), *file) != loading_.end()) {
    return user_error(file->string() + ": its schema is \"like\" one that is like its own, a circle");
  }
  const FloatState before;  // initialisers may flush denormals for the whole thread
  auto target = hosted ? open_host(*file, how) : open_library(*file);
  before.restore();
  if (!target.ok()) return target.error();
  (*target)->file = *file;
  (*target)->options = how.options;
  return (loaded_[key] = *std::move(target)).get();
}

}  // namespace fusediff
