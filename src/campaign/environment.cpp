#include "campaign/environment.h"

#include <sys/utsname.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/files.h"
#include "base/hash.h"

namespace fusediff {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMaxSystemFile = std::uint64_t{16} << 20;
constexpr std::uint64_t kMaxTargetFile = std::uint64_t{4} << 30;

// The value behind the first line that starts with the key, up to its end; "" where there is none.
std::string value_in(const char* file, std::string_view key, char separator) {
  const Result<std::string> text = read_file(file, kMaxSystemFile);
  if (!text.ok()) return "";
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    std::string value = line.substr(std::min(line.find(separator), line.size() - 1) + 1);
    const std::size_t first = value.find_first_not_of(" \t\"");
    const std::size_t last = value.find_last_not_of(" \t\"");
    return first == std::string::npos ? "" : value.substr(first, last - first + 1);
  }
  return "";
}

// Which build of a target it was; "" where the file cannot be read.
std::string hash_of_file(const std::string& file) {
  const Result<std::string> text = read_file(file, kMaxTargetFile);
  return text.ok() ? hash128(*text).hex() : "";
}

}  // namespace

std::string environment_json(const OpenAnswer& sides) {
  Json json;
  json["fusediff"] = FUSEDIFF_VERSION;
  json["compiler"] = __VERSION__;
  utsname system{};
  if (::uname(&system) == 0) {
    json["os"] = std::string(system.sysname) + " " + system.release;
    json["machine"] = system.machine;
  }
  json["distribution"] = value_in("/etc/os-release", "PRETTY_NAME", '=');
  json["cpu"] = value_in("/proc/cpuinfo", "model name", ':');
  json["cpu_flags"] = value_in("/proc/cpuinfo", "flags", ':');
  json["cpus"] = std::thread::hardware_concurrency();
  const std::array<const char*, 2> names = {"target", "against"};
  for (std::size_t side = 0; side < names.size(); ++side) {
    json[names[side]] = {{"name", sides.targets[side]},
                         {"version", sides.versions[side]},
                         {"path", sides.paths[side]},
                         {"file", std::filesystem::path(sides.files[side]).filename().string()},
                         {"file_xxh3_128", hash_of_file(sides.files[side])},
                         {"options", sides.options[side]},
                         {"isolated", sides.isolated[side]},
                         {"variables", sides.variables[side]}};
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fusediff
