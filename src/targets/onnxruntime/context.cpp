#include "onnxruntime/context.h"

#include <charconv>
#include <span>
#include <vector>

#include "kit/failure.h"
#include "onnxruntime/graph.h"

namespace fusediff::onnxruntime {
namespace {

int threads_of(std::string_view value) {
  int parsed = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  kit::require(error == std::errc() && end == value.data() + value.size() && parsed >= 1 && parsed <= 256,
               "option threads is \"", value, "\", it must be a number from 1 to 256");
  return parsed;
}

int level_of(std::string_view value) {
  if (value == "all") return kLevelAll;
  if (value == "extended") return kLevelExtended;
  if (value == "basic") return kLevelBasic;
  if (value == "off") return kLevelOff;
  kit::reject("option level is \"", value, "\", it must be one of off, basic, extended, all");
}

size_t element_count(const fusediff_tensor& tensor) {
  size_t count = 1;
  for (int32_t d = 0; d < tensor.rank; ++d) count *= static_cast<size_t>(tensor.shape[d]);
  return count;
}

const fusediff_tensor& find(std::span<const fusediff_tensor> tensors, const std::string& name) {
  for (const fusediff_tensor& one : tensors) {
    if (name == one.name) return one;
  }
  kit::reject("the call has no tensor ", std::string_view(name));
}

// The values of a call while they are in the library's hands.
class Values {
 public:
  explicit Values(const Library& library) : library_(library) {}
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  ~Values() {
    for (Value* value : values) library_.api().release_value(value);
  }

  void add(const fusediff_tensor& tensor) {
    if (tensor.dtype != FUSEDIFF_F32) kit::unsupported(tensor.name, " is not f32");
    const size_t count = element_count(tensor);
    kit::require(tensor.data != nullptr || count == 0, tensor.name, " is needed and absent");
    Value* made = nullptr;
    void* data = count == 0 ? &nothing_ : tensor.data;
    library_.succeed(library_.api().create_tensor_with_data(library_.cpu(), data, count * sizeof(float), tensor.shape,
                                                            static_cast<size_t>(tensor.rank), kOnnxFloat, &made),
                     "CreateTensorWithDataAsOrtValue");
    values.push_back(made);
    names.push_back(tensor.name);
  }

  std::vector<Value*> values;
  std::vector<const char*> names;

 private:
  const Library& library_;
  float nothing_ = 0;  // what an empty tensor points at
};

}  // namespace

Options parse_options(std::string_view text) {
  Options options;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(word.size() < text.size() ? word.size() + 1 : word.size());
    const size_t equals = word.find('=');
    kit::require(equals != std::string_view::npos, "option \"", word, "\" must be NAME=VALUE");
    const std::string_view name = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    if (name == "library") {
      options.library = value;
    } else if (name == "level") {
      options.level = level_of(value);
    } else if (name == "threads") {
      options.threads = threads_of(value);
    } else {
      kit::reject("unknown option \"", name, "\": there are library, level, threads");
    }
  }
  return options;
}

Context::Context(std::string_view options)
    : options_(parse_options(options)), library_(Library::load(options_.library)) {}

Session* make_session(const Library& library, const std::string& model, int level, int threads,
                      const std::string& optimised_file) {
  const Api& api = library.api();
  SessionOptions* raw = nullptr;
  library.succeed(api.create_session_options(&raw), "CreateSessionOptions");
  const std::unique_ptr<SessionOptions, void (*)(SessionOptions*)> options(raw, api.release_session_options);
  library.succeed(api.set_optimization_level(raw, level), "SetSessionGraphOptimizationLevel");
  library.succeed(api.set_intra_op_threads(raw, threads), "SetIntraOpNumThreads");
  if (!optimised_file.empty()) {
    library.succeed(api.set_optimized_model_file(raw, optimised_file.c_str()), "SetOptimizedModelFilePath");
  }
  Session* made = nullptr;
  library.succeed(api.create_session_from_array(library.env(), model.data(), model.size(), raw, &made),
                  "CreateSessionFromArray");
  return made;
}

Session* Context::session(const std::string& model, bool optimised) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = sessions_.try_emplace({model, optimised}, nullptr, SessionRelease{&library_});
  if (at->second == nullptr) {
    at->second.reset(make_session(library_, model, optimised ? options_.level : kLevelOff, options_.threads, ""));
  }
  return at->second.get();
}

void Context::run(const fusediff_call& call, const std::string& model, bool optimised,
                  const std::vector<std::string>& inputs, const std::string& output) {
  const fusediff_tensor& result = find(std::span(call.outputs, call.output_count), output);
  Values given(library_);
  Values made(library_);
  for (const std::string& name : inputs) given.add(find(std::span(call.inputs, call.input_count), name));
  made.add(result);
  library_.succeed(library_.api().run(session(model, optimised), nullptr, given.names.data(), given.values.data(),
                                      given.values.size(), made.names.data(), made.values.size(), made.values.data()),
                   "Run");
}

}  // namespace fusediff::onnxruntime
