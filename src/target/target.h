// A loaded operator target and its contexts: the only floor that touches the ABI's types outside the runner.
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

namespace fusediff {

struct Target {
  std::string name;  // as the library says
  std::string version;
  std::filesystem::path file;
  std::string options;  // for open()
  Schema schema;
  const fusediff_target_v1* abi = nullptr;  // owned by the library, which stays loaded until the process ends
};

// Loads targets by name or path, each library once.
class TargetLoader {
 public:
  // folders: where a bare NAME is looked for as NAME.so, in this order.
  explicit TargetLoader(std::vector<std::filesystem::path> folders);

  // A wrong name says the nearest one that is there; a library that is none, lacks fusediff_target, has another ABI
  // version, a struct that is too small, missing required functions, or a schema that is refused: one line each, the
  // user's error. The result lives as long as the loader.
  Result<const Target*> load(std::string_view name_or_path, std::string_view options = "");

  // Names of all libraries in the folders, sorted.
  std::vector<std::string> available() const;

 private:
  Result<std::filesystem::path> find(std::string_view name_or_path) const;
  Result<std::unique_ptr<Target>> open_library(const std::filesystem::path& file);
  Result<Schema> read_schema(const std::filesystem::path& file, const fusediff_target_v1& table);

  std::vector<std::filesystem::path> folders_;
  std::vector<std::filesystem::path> loading_;             // files whose schema is being read: a "like" may not return
  std::map<std::string, std::unique_ptr<Target>> loaded_;  // key: canonical path, a newline, options
};

}  // namespace fusediff
