// The command line: finds the command and runs it.
#include <algorithm>
#include <csignal>
#include <exception>
#include <iostream>
#include <new>

#include "cli/command.h"
#include "model/quote.h"

namespace {

void print_usage(std::ostream& out) {
  out << "fusediff: differential fuzzing of machine-learning operators\n\n"
         "usage: fusediff COMMAND [options]\n\n";
  for (const fusediff::Command& command : fusediff::commands()) {
    if (command.summary.empty()) continue;
    out << "  " << command.name << std::string(12 - std::min<std::size_t>(11, command.name.size()), ' ')
        << command.summary << "\n";
  }
  out << "\nfusediff COMMAND --help says more. To see it find something:\n"
         "  fusediff fuzz --target planted --time 20\n";
}

int run(const fusediff::Arguments& arguments) {
  if (arguments.empty()) {
    print_usage(std::cerr);
    return fusediff::kExitUser;
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    print_usage(std::cout);
    return fusediff::kExitClean;
  }
  if (name == "--version") {
    std::cout << "fusediff " << FUSEDIFF_VERSION << "\n";
    return fusediff::kExitClean;
  }
  std::vector<std::string> names;
  for (const fusediff::Command& command : fusediff::commands()) {
    if (command.name == name) return command.run({arguments.begin() + 1, arguments.end()});
    if (!command.summary.empty()) names.emplace_back(command.name);
  }
  return fusediff::fail(fusediff::user_error(fusediff::not_one_of(name, "a command", names)));
}

// A result that did not get out whole must not look like one.
int with_stdout(int code) {
  if (std::cout.flush()) return code;
  return std::max(code, fusediff::fail(fusediff::user_error(
                            "stdout: cannot be written to the end: what was printed is not whole; is the disk full?")));
}

}  // namespace

int main(int count, char** values) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error of the write that meets it
  try {
    return with_stdout(run({values + std::min(count, 1), values + count}));
  } catch (const std::bad_alloc&) {
    return fusediff::fail(fusediff::our_error("out of memory"));
  } catch (const std::exception& thrown) {
    return fusediff::fail(fusediff::our_error(thrown.what()));
  }
}
