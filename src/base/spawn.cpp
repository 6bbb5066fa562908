#include "base/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FUSEDIFF_SHADOW_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FUSEDIFF_SHADOW_MEMORY 1
#endif
#endif

namespace fusediff {
namespace {

// posix_spawn's two attribute objects, freed on every way out.
struct Plan {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  Plan() {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
  }
  ~Plan() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
};

void set_signals_and_group(posix_spawnattr_t& attributes) {
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

void set_files(posix_spawn_file_actions_t& files, const SpawnRequest& request) {
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (request.output_file.empty()) {
    ::posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  } else {
    const int flags = O_WRONLY | O_CREAT | O_APPEND | (request.truncate_output ? O_TRUNC : 0);
    ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, request.output_file.c_str(), flags, 0644);
    ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  }
  for (const auto& [ours, theirs] : request.descriptors) ::posix_spawn_file_actions_adddup2(&files, ours, theirs);
}

// Ours, but for the names that are given another value.
std::vector<char*> environment_of(const SpawnRequest& request) {
  std::vector<char*> all;
  for (char** ours = environ; *ours != nullptr; ++ours) {
    const std::string_view line = *ours;
    const std::string_view name = line.substr(0, std::min(line.find('='), line.size() - 1) + 1);
    const auto given = [&](const std::string& other) { return other.starts_with(name); };
    if (std::none_of(request.environment.begin(), request.environment.end(), given)) all.push_back(*ours);
  }
  for (const std::string& line : request.environment) all.push_back(const_cast<char*>(line.c_str()));
  all.push_back(nullptr);
  return all;
}

Ended ended_of(int status) {
  if (WIFSIGNALED(status)) return {WTERMSIG(status), 0};
  return {0, WEXITSTATUS(status)};
}

}  // namespace

Result<pid_t> spawn(const SpawnRequest& request) {
  Plan plan;
  set_signals_and_group(plan.attributes);
  set_files(plan.files, request);
  std::vector<char*> argv = {const_cast<char*>(request.program.c_str())};
  for (const std::string& argument : request.arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t process = 0;
  const std::vector<char*> environment = environment_of(request);
  const int code =
      ::posix_spawn(&process, request.program.c_str(), &plan.files, &plan.attributes, argv.data(), environment.data());
  if (code != 0) return user_error(request.program + ": cannot start it: " + std::strerror(code));
  return process;
}

std::optional<Ended> poll_end(pid_t process) {
  int status = 0;
  const pid_t got = ::waitpid(process, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return std::nullopt;
  if (got < 0) return Ended{};  // nobody's child any more: treat it as gone
  return ended_of(status);
}

void kill_group(pid_t process) { ::kill(-process, SIGKILL); }

void kill_and_reap(pid_t process) {
  kill_group(process);
  ::kill(process, SIGKILL);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
}

bool die_with_parent(pid_t expected) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return ::getppid() == expected;
}

void outlive_parent() { ::prctl(PR_SET_PDEATHSIG, 0); }

void limit_process(std::uint64_t data_bytes) {
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
#ifdef FUSEDIFF_SHADOW_MEMORY
  (void)data_bytes;
#else
  const rlimit data = {data_bytes, data_bytes};
  ::setrlimit(RLIMIT_DATA, &data);
#endif
}

std::string describe(const Ended& ended) {
  if (ended.signal == 0) return "exit code " + std::to_string(ended.exit_code);
  const char* name = ::sigdescr_np(ended.signal);
  return "signal " + std::to_string(ended.signal) + (name == nullptr ? "" : " (" + std::string(name) + ")");
}

}  // namespace fusediff
