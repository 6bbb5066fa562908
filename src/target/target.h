// A loaded operator target, in this process or in one of its own: the only floor that touches the ABI's types outside
// the runner.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/schema.h"
#include "target/fusediff_target.h"
#include "target/host.h"

namespace fusediff {

struct Target {
  std::string name;  // as the library says
  std::string version;
  std::filesystem::path file;
  std::string options;  // for open()
  Schema schema;
  const fusediff_target_v1* abi = nullptr;  // owned by the library, which stays loaded until the process ends; or:
  std::unique_ptr<Host> host;               // it runs in a process of its own
  const char* (*note)() = nullptr;  // of abi: the library's words on the calling thread's last call; may be null

  // Tensors are written and read through the target, not as this process's memory.
  bool owns_memory() const { return host != nullptr || abi->alloc != nullptr; }
};

// How a target is loaded; two that differ in any of it are two targets.
struct LoadOptions {
  std::string options;                   // for open()
  bool isolate = false;                  // in a process of its own, as a Python target always is
  std::vector<std::string> environment;  // "NAME=VALUE", of that process: not empty means isolate
};

// The file is loaded into this process and its table looked over: fusediff_target_v1's required members are there. The
// user's error. The library stays loaded also when it is refused.
Result<const fusediff_target_v1*> load_table(const std::filesystem::path& file);
// fusediff_note of a library that is loaded; null where it has none.
const char* (*find_note(const std::filesystem::path& file))();

// Loads targets by name or path, each library once.
class TargetLoader {
 public:
  // folders: where a bare NAME is looked for as NAME.so or NAME.py, in this order. Beside the first that has it stands
  // fusediff-host.
  explicit TargetLoader(std::vector<std::filesystem::path> folders);

  // A wrong name says the nearest one that is there; a library that is none, lacks fusediff_target, has another ABI
  // version, a struct that is too small, missing required functions, or a schema that is refused: one line each, the
  // user's error. The result lives as long as the loader.
  Result<const Target*> load(std::string_view name_or_path, const LoadOptions& how = {});

  // Names of all targets in the folders, sorted.
  std::vector<std::string> available() const;

 private:
  Result<std::filesystem::path> find(std::string_view name_or_path) const;
  Result<std::unique_ptr<Target>> open_library(const std::filesystem::path& file);
  Result<std::unique_ptr<Target>> open_host(const std::filesystem::path& file, const LoadOptions& how);
  Result<HostCommand> host_command(const std::filesystem::path& file) const;
  Result<Schema> read_schema(const std::filesystem::path& file, const char* text);

  std::vector<std::filesystem::path> folders_;
  std::vector<std::filesystem::path> loading_;             // files whose schema is being read: a "like" may not return
  std::map<std::string, std::unique_ptr<Target>> loaded_;  // key: canonical path, a newline, options
};

}  // namespace fusediff
