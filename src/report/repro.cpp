#include "report/repro.h"

#include <string_view>

#include "model/base64.h"
#include "model/number_text.h"
#include "report/libraries.h"
#include "report/python_text.h"
#include "report/repro_plan.h"
#include "report/settings.h"
#include "report/text.h"
#include "report/wrapped.h"

namespace fusediff {

// The parts of the script, in src/report/repro.
std::string_view repro_numbers();
std::string_view repro_c_library();
std::string_view repro_call();
std::string_view repro_company();
std::string_view repro_main();
std::string_view repro_memory();
std::string_view repro_python_file();
std::string_view repro_look_apart();
std::string_view repro_look_company();
std::string_view repro_look_difference();
std::string_view repro_look_fills();
std::string_view repro_look_gradient();
std::string_view repro_look_guards();
std::string_view repro_look_inputs();
std::string_view repro_look_memory();
std::string_view repro_look_one_side();
std::string_view repro_look_relation();
std::string_view repro_look_reruns();
std::string_view repro_look_status();

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostEmbedded = std::size_t{256} << 10;  // bytes of all tensors that stand in the script
constexpr std::size_t kShownElements = 8;                      // of a tensor, in its comment
constexpr std::size_t kBase64Columns = 112;

std::string_view part_of(Look look) {
  switch (look) {
    case Look::kGuards:
      return repro_look_guards();
    case Look::kFills:
      return repro_look_fills();
    case Look::kMemory:
      return repro_look_memory();
    case Look::kInputs:
      return repro_look_inputs();
    case Look::kReruns:
      return repro_look_reruns();
    case Look::kCompany:
      return repro_look_company();
    case Look::kStatus:
      return repro_look_status();
    case Look::kGradient:
      return repro_look_gradient();
    case Look::kRelation:
      return repro_look_relation();
    case Look::kDifference:
      return repro_look_difference();
    case Look::kOneSide:
      return repro_look_one_side();
  }
  return "";
}

bool needs_recorded_outputs(Look look) {
  return look == Look::kDifference || look == Look::kGradient || look == Look::kOneSide;
}

bool shares_a_context(const Bundle& bundle) {
  const ExperimentKind kind = bundle.recording->experiment.kind;
  return kind == ExperimentKind::kThreads || kind == ExperimentKind::kRepeat || kind == ExperimentKind::kHistory;
}

// Kinds of files that the script can be given.
struct Kinds {
  bool c = false;       // shared libraries
  bool python = false;  // Python files
};
Kinds kinds_of(const Bundle& bundle) {
  const Settings settings = settings_of(bundle.environment);
  const bool two = are_two_libraries(bundle.finding, bundle.environment);
  const std::array<bool, 2> python = {settings[0].python, two ? settings[1].python : settings[0].python};
  return {!python[0] || !python[1], python[0] || python[1]};
}

// How the two files are called in the script's help.
std::array<std::string, 2> files_of(const Bundle& bundle) {
  const Settings settings = settings_of(bundle.environment);
  return {settings[0].python ? "TARGET.py" : "LIBRARY.so", settings[1].python ? "AGAINST.py" : "AGAINST.so"};
}

std::size_t bytes_of(const std::vector<StoredTensor>& tensors) {
  std::size_t bytes = 0;
  for (const StoredTensor& tensor : tensors) bytes += tensor.bytes.size();
  return bytes;
}

std::string first_elements(const StoredTensor& tensor) {
  const std::size_t size = size_of(tensor.dtype), count = tensor.bytes.size() / size;
  std::string text;
  for (std::size_t i = 0; i < std::min(count, kShownElements); ++i)
    text += " " + decimal(tensor.dtype, load_bits(tensor.dtype, tensor.bytes.data() + i * size));
  return count > kShownElements ? text + " ..." : text;
}

// {name: (dtype, shape, base64)}, each with a comment of its first elements; {} where they stand in a file.
std::string tensors_text(const std::vector<StoredTensor>& tensors) {
  if (tensors.empty() || bytes_of(tensors) > kMostEmbedded) return "{}";
  std::string text = "{";
  for (const StoredTensor& tensor : tensors) {
    text += "\n    #" + (tensor.bytes.empty() ? " empty" : first_elements(tensor)) + "\n    ";
    text += python_literal(Json(tensor.name)) + ": (" + python_literal(Json(name_of(tensor.dtype))) + ", " +
            python_literal(Json(tensor.shape)) + ",";
    const std::string base64 = to_base64(tensor.bytes);
    for (std::size_t at = 0; at == 0 || at < base64.size(); at += kBase64Columns)
      text += "\n        \"" + base64.substr(at, kBase64Columns) + "\"";
    text += "),";
  }
  return text + "\n}";
}

std::string names_text(const std::vector<StoredTensor>& tensors) {
  Json names = Json::array();
  for (const StoredTensor& tensor : tensors) names.push_back(tensor.name);
  return python_literal(names, 19);
}

std::string assigned(const std::string& name, const Json& value) {
  return name + " = " + python_literal(value, name.size() + 3) + "\n";
}

std::string about(const Bundle& bundle) {
  const Finding& f = bundle.finding;
  std::string text = wrapped(headline(f), 0) + "\n" + wrapped(comparison_of(f, bundle.smallest), 0) +
                     wrapped("What that means: " + meaning_of(f.cls), 0);
  const bool python = settings_of(bundle.environment)[0].python;
  text +=
      "\n" + wrapped(std::string("This script ") +
                         (python ? "loads the target's Python file and calls its functions"
                                 : "calls the library through its C header, fusediff_target.h") +
                         ", prints what it sees, and says in its last line whether the bug is there. Exit code: 1 it "
                         "is, 0 it is not, 2 this " +
                         (python ? "file" : "library") + " cannot show it. It needs Python 3.8 and NumPy" +
                         (python ? ", and what the file imports" : "") +
                         ". From top to bottom: what was found, the calls to make, numbers, memory, a call, what is "
                         "looked for, the program, and the bytes of the tensors.",
                     0);
  if (are_two_libraries(f, bundle.environment) && !bundle.recording->calls[1].empty()) {
    const std::array<std::string, 2> libraries = library_words(f, bundle.environment);
    text += "\n" + wrapped("The two sides are two libraries: " + files_of(bundle)[0] + " is " + libraries[0] +
                               ", path " + f.paths[0] + "; the other side is " + libraries[1] + ", path " + f.paths[1] +
                               ". Without " + files_of(bundle)[1] + " its recorded outputs are compared with.",
                           0);
  } else if (are_apart(bundle)) {
    text += "\n" + wrapped(
                       "The two sides are opened in different ways, which one process cannot do: each has its own. "
                       "Without " +
                           files_of(bundle)[1] +
                           " the recorded outputs of the other side are compared "
                           "with.",
                       0);
  }
  return text;
}

std::string head(const Bundle& bundle) {
  const bool python = kinds_of(bundle).python;
  return "#!/usr/bin/env python3\n\"\"\"" + python_docstring(about(bundle)) + R"("""
import argparse
import base64
import ctypes
)" + (python ? "import importlib.util\nimport inspect\n" : "") +
         R"(import json
import mmap
import os
)" + (shares_a_context(bundle) ? "import random\n" : "") +
         R"(import signal
import stat
import subprocess
import sys
import tempfile
)" + (shares_a_context(bundle) || python ? "import threading\n" : "") +
         R"(import time

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until main(), and in the process that loads the libraries
try:
    import numpy as np
except ImportError:
    print("numpy is needed: apt-get install python3-numpy, or pip install numpy", file=sys.stderr)
    sys.exit(2)

)";
}

std::string rule_of_section(const std::string& title) {
  const std::string text = "# ---- " + title + " ";
  return text + std::string(text.size() < 119 ? 119 - text.size() : 0, '-') + "\n\n";
}

std::string plan(const Bundle& bundle) {
  std::string text = rule_of_section("what was found") + assigned("FINDING", finding_plan(bundle));
  text += "NAMES = FINDING[\"sides\"]\n" + assigned("FILES", files_of(bundle)) + "\n\n" + rule_of_section("the calls");
  text +=
      "# Strides are in elements. place: which end of its pages a tensor leans on (the end); offset: elements from "
      "there.\n\n";
  text += assigned("EXPERIMENT", experiment_plan(bundle));
  text += assigned("CALLS", calls_plan(bundle));
  if (look_of(bundle.finding) == Look::kRelation) {
    text +=
        "\n# Elements of one output that must hold the same bits in two of the calls, counted from 0; none: all.\n# As "
        "[first, step, count].\n";
    text += assigned("SAME", same_plan(bundle));
  }
  return text + "\n\n";
}

std::string data(const Bundle& bundle) {
  const Recording& recording = *bundle.recording;
  const std::vector<StoredTensor> none;
  const std::vector<StoredTensor>& outputs = needs_recorded_outputs(look_of(bundle.finding)) ? recording.outputs : none;
  std::string text = rule_of_section("the bytes of the tensors");
  text += "# name: (dtype, shape, raw little-endian elements in base64), the first elements above each.\n";
  if (bytes_of(recording.inputs) > kMostEmbedded)
    text += "# The inputs are in inputs.safetensors beside this script.\n";
  if (bytes_of(outputs) > kMostEmbedded) text += "# The outputs are in outputs.safetensors beside this script.\n";
  text += "\nINPUTS = " + tensors_text(recording.inputs) + "\n";
  text += "OUTPUTS = " + tensors_text(outputs) + "\n";
  text += "RECORDED_OUTPUTS = " + names_text(outputs) + "\n\n\n";
  return text;
}

}  // namespace

std::string repro_script(const Bundle& bundle) {
  std::string text = head(bundle) + plan(bundle);
  text += repro_numbers();
  const Kinds kinds = kinds_of(bundle);
  if (kinds.python) text += repro_python_file();
  text += repro_memory();
  if (kinds.c) text += repro_c_library();
  text += repro_call();
  if (shares_a_context(bundle)) text += repro_company();
  text += part_of(look_of(bundle.finding));
  if (look_of(bundle.finding) == Look::kDifference && are_apart(bundle)) text += repro_look_apart();
  text += repro_main();
  text += data(bundle);
  return text + "if __name__ == \"__main__\":\n    sys.exit(main())\n";
}

}  // namespace fusediff
