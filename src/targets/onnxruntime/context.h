// One context: a library and a session for each graph and level that was asked for. Sessions are made at the first call
// and take any shape. Calls may come from several threads: a session may be run by many at once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fusediff_target.h"
#include "onnxruntime/api.h"

namespace fusediff::onnxruntime {

// --target-option: words NAME=VALUE, separated by commas.
struct Options {
  std::string library;  // "": what FUSEDIFF_ONNXRUNTIME names
  int level = kLevelAll;
  int threads = 1;
};

// Throws kit::Failure (REJECTED) at an unknown word.
Options parse_options(std::string_view text);

class Context {
 public:
  explicit Context(std::string_view options);

  // Runs the model on the tensors of the call that it names. `model` is what the session is kept by.
  void run(const fusediff_call& call, const std::string& model, bool optimised, const std::vector<std::string>& inputs,
           const std::string& output);

 private:
  struct SessionRelease {
    const Library* library;
    void operator()(Session* session) const { library->api().release_session(session); }
  };
  using SessionHandle = std::unique_ptr<Session, SessionRelease>;

  Session* session(const std::string& model, bool optimised);

  Options options_;
  const Library& library_;
  std::mutex mutex_;
  std::map<std::pair<std::string, bool>, SessionHandle> sessions_;  // at most three for each operator
};

// A session of its own; optimised_file: where the library writes the graph that it made of it, or "".
Session* make_session(const Library& library, const std::string& model, int level, int threads,
                      const std::string& optimised_file);

}  // namespace fusediff::onnxruntime
