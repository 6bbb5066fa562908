// The hidden command that every target is opened in: see campaign/serve.h.
#include <unistd.h>

#include <new>

#include "campaign/serve.h"
#include "base/spawn.h"
#include "cli/options.h"

namespace fusediff {

int run_serve(const Arguments& arguments) {
  OptionSet set;
  set.usage = "fusediff serve [options] --parent PID";
  set.about = "Answers requests of the process PID on descriptors 3 and 4. Started by other commands.";
  add_setup_options(set.shown, 1024);
  set.shown.add_options()("parent", po::value<std::string>()->value_name("PID")->required(), "whom to die with");
  const auto parsed = parse_options(set, arguments);
  if (!parsed.ok()) return fail(parsed.error());
  const po::variables_map& values = **parsed;
  const Result<Setup> setup = setup_of(values);
  if (!setup.ok()) return fail(setup.error());
  const auto parent = number_of("--parent", values["parent"].as<std::string>(), 1, 1u << 30);
  if (!parent.ok()) return fail(parent.error());
  if (!die_with_parent(static_cast<pid_t>(*parent))) return kExitClean;
  limit_process(process_bytes(*setup));
  try {
    const Status served = serve(*setup, 3, 4);
    // _exit: what a target registered to run at exit is not our business any more.
    ::_exit(served.ok() ? kExitClean : kExitOurs);
  } catch (const std::bad_alloc&) {
    ::_exit(kMemoryExit);
  }
}

}  // namespace fusediff
