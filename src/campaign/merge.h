// Corpora of several runs become the smallest set that keeps every feature: libFuzzer's own merge, in processes of our
// worker. Writes into folders of its own; what is merged is never touched. Which files are cases, and legal, is asked
// before (campaign/corpus_files.h, Request::Kind::kLegal).
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace fusediff {

struct MergePlan {
  std::string worker;                  // the program
  std::vector<std::string> arguments;  // what it opens, as its command line spells it
  std::filesystem::path scratch;       // a private folder that is there, of plain characters: libFuzzer asks a shell
  std::filesystem::path tensors;       // where the files are that cases name; of plain characters, or ""
  std::vector<std::string> cases;      // their text, each once
  const std::atomic<bool>* stop = nullptr;
};

struct Merged {
  std::vector<std::size_t> kept;    // indices into cases, rising
  std::vector<std::size_t> killed;  // ended the process: their features cannot be had, they are not kept
};

// Blocks. The same cases give the same set, in whatever order they stand. An error is ours, or says that it was
// stopped.
Result<Merged> merge(const MergePlan& plan);

// The name of a case's file: its hash, the same everywhere.
std::string name_of_case(const std::string& text);

}  // namespace fusediff
