// fusediff import: tensors that another program captured, and suites of test cases of other tools, become cases.
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "base/files.h"
#include "campaign/ask.h"
#include "cli/options.h"
#include "import/suite.h"
#include "import/tensors.h"
#include "model/quote.h"
#include "target/target.h"

namespace fusediff {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFirstBytes = 4096;

OptionSet options() {
  OptionSet set;
  set.usage = "fusediff import FILE... [options]";
  set.about =
      "Makes cases of what others have: tensors captured in .npy, .npz or .safetensors, which need --op, and suites "
      "of\n"
      "test cases (atk: JSON, ttk: CSV). Says each case that it wrote, and each tensor or row that it did not use and\n"
      "why. Sizes follow from the shapes; groups such as step3/x, step4/x become a case each. fuzz --corpus starts "
      "from\n"
      "the values, check runs them as they are. Exit code: 0 done, 2 nothing could be made, or an option is wrong.";
  set.example =
      "  fusediff import step100.npz --op moe_gating_topk --map x=gate_logits --attr k=8 --out corpus/mine\n"
      "  fusediff import suite.json --out corpus/suite\n";
  set.rest = "FILE";
  const auto list = [](const char* name) { return po::value<std::vector<std::string>>()->value_name(name); };
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  set.shown.add_options()                                                                                      //
      ("help", "this text")                                                                                    //
      ("op", text("OP"), "the operator that the tensors are inputs of")                                        //
      ("target", text("NAME")->default_value("builtin"), "whose operators: a target's name or .so file")       //
      ("out", text("FOLDER")->default_value("corpus/imported"), "where the cases go")                          //
      ("format", text("NAME")->default_value("auto"), "auto, npy, npz, safetensors, atk or ttk")               //
      ("map", list("INPUT=NAME"), "the tensor of that name is this input; may be repeated, as the next ones")  //
      ("attr", list("ATTR=VALUE"), "an attribute of the operator")                                             //
      ("dim", list("DIM=SIZE"), "a size that no tensor states")                                                //
      ("dtype", list("INPUT=DTYPE"), "what raw elements mean, or what others are rounded to")                  //
      ("rows", text("LOW:HIGH"), "only these rows of the operator, LOW to HIGH - 1")                           //
      ("group", text("TEXT")->default_value("/"), "what stands between a group and a tensor in its name")      //
      ("name", text("NAME"), "of the cases (the file's)")                                                      //
      ("memory", text("MIB")->default_value("1024"), "of all tensors of one case");
  return set;
}

// "NAME=VALUE", each name once.
Result<std::map<std::string, std::string>> pairs_of(const po::variables_map& values, const std::string& option) {
  std::map<std::string, std::string> pairs;
  if (values.count(option) == 0) return pairs;
  for (const std::string& text : values[option].as<std::vector<std::string>>()) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
      return user_error("--" + option + ": " + quote(text) + " is no pair; NAME=VALUE is");
    if (!pairs.emplace(text.substr(0, equals), text.substr(equals + 1)).second)
      return user_error("--" + option + ": " + quote(text.substr(0, equals)) + " is given twice");
  }
  return pairs;
}

Result<std::int64_t> size_of(const std::string& option, const std::string& text) {
  const Result<std::uint64_t> size = number_of(option, text, 0, std::uint64_t{1} << 31);
  if (!size.ok()) return size.error();
  return static_cast<std::int64_t>(*size);
}

Status read_rows(const std::string& text, TensorOptions& options) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return user_error("--rows: " + quote(text) + " is no range; 0:4096 is");
  const Result<std::int64_t> low = size_of("--rows", text.substr(0, colon));
  if (!low.ok()) return low.error();
  const Result<std::int64_t> high = size_of("--rows", text.substr(colon + 1));
  if (!high.ok()) return high.error();
  if (*low >= *high) return user_error("--rows: " + quote(text) + " is empty; 0:4096 is not");
  options.rows = {*low, *high};
  return {};
}

Result<TensorOptions> tensor_options(const po::variables_map& values) {
  TensorOptions options;
  const auto names = pairs_of(values, "map"), attrs = pairs_of(values, "attr"), dims = pairs_of(values, "dim"),
             dtypes = pairs_of(values, "dtype");
  for (const auto* pairs : {&names, &attrs, &dims, &dtypes}) {
    if (!pairs->ok()) return pairs->error();
  }
  options.names = *names;
  options.attrs = *attrs;
  for (const auto& [name, text] : *dims) {
    const Result<std::int64_t> size = size_of("--dim " + name, text);
    if (!size.ok()) return size.error();
    options.dims[name] = *size;
  }
  for (const auto& [name, text] : *dtypes) {
    const std::optional<DType> dtype = dtype_named(text);
    std::vector<std::string> legal;
    for (const DType one : kDTypes) legal.emplace_back(name_of(one));
    if (!dtype) return user_error("--dtype " + name + ": " + not_one_of(text, "a dtype", legal));
    options.dtypes[name] = *dtype;
  }
  if (values.count("rows") != 0) {
    if (Status read = read_rows(values["rows"].as<std::string>(), options); !read.ok()) return read.error();
  }
  options.separator = values["group"].as<std::string>();
  if (values.count("name") != 0) options.name = values["name"].as<std::string>();
  options.out = values["out"].as<std::string>();
  const Result<std::uint64_t> memory = number_of("--memory", values["memory"].as<std::string>(), 1, 1 << 24);
  if (!memory.ok()) return memory.error();
  options.max_bytes = *memory << 20;
  return options;
}

// A file and what reads it: one of the two is there.
struct Source {
  fs::path path;
  const CaptureFormat* tensors = nullptr;
  const SuiteFormat* suite = nullptr;
};

Result<Source> source_of(const fs::path& path, const std::string& format) {
  Source source{path};
  std::error_code code;
  if (!fs::is_regular_file(path, code)) {
    return user_error(quote(path.string()) +
                      (fs::exists(path, code) ? ": is not a regular file" : ": there is no such file"));
  }
  std::string first(kFirstBytes, '\0');
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return user_error(quote(path.string()) + ": cannot be read");
  stream.read(first.data(), static_cast<std::streamsize>(first.size()));
  first.resize(static_cast<std::size_t>(stream.gcount()));
  std::vector<std::string> known = {"auto"};
  for (const CaptureFormat& one : capture_formats()) {
    known.emplace_back(one.name);
    if (format == one.name || (format == "auto" && source.tensors == nullptr && one.is(first))) source.tensors = &one;
  }
  for (const SuiteFormat& one : suite_formats()) {
    known.emplace_back(one.name);
    const bool found = source.tensors != nullptr || source.suite != nullptr;
    if (format == one.name || (format == "auto" && !found && one.is(first))) source.suite = &one;
  }
  if (std::find(known.begin(), known.end(), format) == known.end())
    return user_error("--format: " + not_one_of(format, "a format", known));
  for (const CaptureFormat& one : capture_formats()) {  // cut off or damaged: its reader says how
    if (!source.tensors && !source.suite && path.extension() == one.ending) source.tensors = &one;
  }
  if (source.tensors == nullptr && source.suite == nullptr)
    return user_error(quote(path.string()) + ": is none of npy, npz, safetensors, atk (JSON) and ttk (CSV)");
  return source;
}

// First in a child, so that a target that ends its process is one line.
Result<const Target*> open_target(TargetLoader& loader, const std::string& name) {
  Setup setup;
  setup.folders = target_folders();
  setup.target = name;
  Child child(child_options(setup));
  const Result<ListAnswer> listed = list_in_child(child, setup.seconds);
  if (!listed.ok()) return listed.error();
  return loader.load(name);
}

Result<const Operator*> operator_of(const po::variables_map& values, const Target& target) {
  std::vector<std::string> known;
  for (const Operator& op : target.schema.operators) known.push_back(op.name);
  if (values.count("op") == 0) {
    if (target.schema.operators.size() == 1) return &target.schema.operators.front();
    return user_error("--op: tensors are inputs of an operator, which must be named: " + list_of(known));
  }
  const std::string name = values["op"].as<std::string>();
  if (const Operator* op = target.schema.find(name)) return op;
  return user_error("--op: " + not_one_of(name, "an operator of " + target.name, known));
}

// Of the folder and those above it the ones that are not there, the innermost first.
std::vector<fs::path> absent_folders(fs::path folder) {
  std::vector<fs::path> absent;
  std::error_code code;
  if (!folder.has_filename()) folder = folder.parent_path();  // "out/"
  while (!folder.empty() && !fs::exists(folder, code)) {
    absent.push_back(folder);
    folder = folder.parent_path();
  }
  return absent;
}

class Importer {
 public:
  Importer(const po::variables_map& values, const Target& target, const TensorOptions& options)
      : values_(values), target_(target), options_(options) {}

  // .npy files are one pool of names; every other file stands alone.
  int run(const std::vector<Source>& sources) {
    std::vector<CapturedFile> loose;
    for (const Source& source : sources) {
      if (source.tensors != nullptr && source.tensors->name == "npy") loose.push_back({source.path, source.tensors});
    }
    int code = kExitClean;
    bool pooled = false;
    for (const Source& source : sources) {
      const bool is_loose = source.tensors != nullptr && source.tensors->name == "npy";
      if (is_loose && std::exchange(pooled, true)) continue;
      const Result<int> made =
          source.suite != nullptr
              ? import_suite(source.path, *source.suite, target_.schema, options_, say)
              : tensors(is_loose ? loose : std::vector<CapturedFile>{{source.path, source.tensors}});
      if (!made.ok()) code = std::max(code, fail(made.error()));
    }
    return code;
  }

 private:
  static void say(const std::string& line) { std::cout << line << "\n"; }

  Result<int> tensors(const std::vector<CapturedFile>& files) const {
    const Result<const Operator*> op = operator_of(values_, target_);
    if (!op.ok()) return op.error();
    return import_tensors(files, **op, options_, say);
  }

  const po::variables_map& values_;
  const Target& target_;
  const TensorOptions& options_;
};

}  // namespace

int run_import(const Arguments& arguments) {
  const OptionSet set = options();
  const auto parsed = parse_options(set, arguments);
  if (!parsed.ok()) return fail(parsed.error());
  if (!*parsed) return kExitClean;
  const Result<TensorOptions> wanted = tensor_options(**parsed);
  if (!wanted.ok()) return fail(wanted.error());
  std::vector<Source> sources;
  for (const std::string& file : rest_of(**parsed)) {
    const Result<Source> source = source_of(file, (**parsed)["format"].as<std::string>());
    if (!source.ok()) return fail(source.error());
    sources.push_back(*source);
  }
  if (sources.empty()) return fail(user_error("import: no file is named; fusediff import FILE... is right"));
  TargetLoader loader(target_folders());
  const Result<const Target*> target = open_target(loader, (**parsed)["target"].as<std::string>());
  if (!target.ok()) return fail(target.error());
  const std::vector<fs::path> made_here = absent_folders(wanted->out);
  if (Status made = make_directories(wanted->out); !made.ok()) return fail(made.error());
  const int code = Importer(**parsed, **target, *wanted).run(sources);
  std::error_code ignored;
  for (const fs::path& folder : made_here) fs::remove(folder, ignored);  // those alone that are empty
  std::cout << std::flush;
  return code;
}

}  // namespace fusediff
