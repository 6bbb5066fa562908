// A child that does what the request says: answers, dies in several ways, hangs, breaks its channel. For child_test.
#include <signal.h>
#include <unistd.h>

#include <string>

namespace {

void say(const std::string& text) {
  if (::write(4, text.data(), text.size()) < 0) ::_exit(9);
}

bool obey(const std::string& line) {
  if (line == "answer") say("{\"pid\":" + std::to_string(::getpid()) + "}\n");
  if (line.starts_with("echo ")) say("{\"bytes\":" + std::to_string(line.size()) + "}\n");
  if (line == "print") {
    say("{}\n");
    return ::write(1, "noise\n", 6) == 6;
  }
  if (line == "exit") ::_exit(3);
  if (line == "signal") ::raise(SIGUSR1);  // one that sanitizers leave alone
  if (line == "kill") ::raise(SIGKILL);
  if (line == "hang") ::pause();
  if (line == "garbage") say("this is no JSON\n");
  if (line == "two") say("{}\n{}\n");
  if (line == "half") {
    say("{\"verdict\":");
    ::_exit(0);
  }
  if (line == "close") {
    ::close(3);
    ::close(4);
    ::pause();
  }
  if (line == "orphan" && ::fork() == 0) ::pause();  // keeps the channel open
  return line != "orphan";
}

}  // namespace

int main() {
  std::string line;
  char c = 0;
  while (::read(3, &c, 1) == 1) {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (!obey(line)) return 5;
    line.clear();
  }
  return 0;
}
