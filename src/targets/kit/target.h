// A whole target out of a list of operators. A target file includes this header, writes one Operator for each operator
// and ends with FUSEDIFF_KIT_TARGET("name", "version", kFirst, kSecond). That exports fusediff_target(); statuses,
// error texts, unknown operators and paths, and every exception are seen to here. Tensors are host memory.
//
//   void scale(const Call& call) {
//     const double by = call.real("by");
//     for_each_row<float>(std::array{call.output("y"), call.input("x")}, [&](const auto& row) {
//       const auto& [y, x] = row;
//       for (int64_t i = 0; i < y.shape[0]; ++i) y(i) = x(i) * static_cast<float>(by);
//     });
//   }
//   constexpr Operator kScale{"scale", R"({"name": "scale", "paths": ["fused"], ...})", {{"fused", scale}}};
//   FUSEDIFF_KIT_TARGET("mine", "1.0", kScale)
//
// kit/schema.h writes the record by typed calls instead: op("scale").dim(...).path("fused", scale).
#pragma once

#include <cstdio>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fusediff_target.h"
#include "kit/call.h"
#include "kit/failure.h"

namespace fusediff {
namespace kit __attribute__((visibility("hidden"))) {

  // One way to compute an operator. run reads the inputs and writes every wanted output, or throws (failure.h).
  struct Path {
    const char* name = nullptr;
    void (*run)(const Call&) = nullptr;
    size_t (*workspace_bytes)(const Call&) = nullptr;  // null: none. Tensor data says presence only and is not read
  };

  inline constexpr size_t kMaxPaths = 8;

  struct Operator {
    const char* name;
    const char* schema;  // the JSON object of this operator alone; "threads" stands there if it is not shared_context
    Path paths[kMaxPaths];
  };

  // The context of a target that keeps nothing between calls.
  struct NoContext {};

  namespace detail {

  struct Registry {
    std::vector<const Operator*> operators;
    std::string schema;
    fusediff_target_v1 table{};
  };

  inline Registry& registry() {
    static Registry instance;
    return instance;
  }

  inline thread_local char error_text[512] = "";

  template <class F>
  fusediff_status guarded(F&& f) noexcept {
    const auto note = [](const char* text) { std::snprintf(error_text, sizeof(error_text), "%s", text); };
    try {
      f();
      return FUSEDIFF_OK;
    } catch (const Failure& failure) {
      note(failure.what());
      return failure.status();
    } catch (const std::bad_alloc&) {
      note("out of memory");
    } catch (const std::exception& other) {
      note(other.what());
    } catch (...) {
      note("an exception of unknown type");
    }
    return FUSEDIFF_FAILED;
  }

  inline const Path& find_path(const fusediff_call& call) {
    require(call.struct_size >= sizeof(fusediff_call), "the call is of an older layout");
    const std::string_view op = call.op;
    const std::string_view path = call.path;
    for (const Operator* candidate : registry().operators) {
      if (op != candidate->name) {
        continue;
      }
      for (const Path& offered : candidate->paths) {
        if (offered.run != nullptr && path == offered.name) {
          return offered;
        }
      }
      unsupported("operator ", op, " has no path ", path);
    }
    unsupported("no operator ", op);
  }

  inline fusediff_status run(void* context, const fusediff_call* call) {
    return guarded([&] { find_path(*call).run(Call(*call, context)); });
  }

  inline fusediff_status workspace_bytes(void* context, const fusediff_call* call, size_t* bytes) {
    return guarded([&] {
      const Path& path = find_path(*call);
      *bytes = path.workspace_bytes == nullptr ? 0 : path.workspace_bytes(Call(*call, context));
    });
  }

  // A Context with a constructor from std::string_view gets the options; for any other they must be "".
  template <class Context>
  fusediff_status open(const char* options, void** context) {
    return guarded([&] {
      const std::string_view given = options == nullptr ? "" : options;
      if constexpr (std::is_constructible_v<Context, std::string_view>) {
        *context = new Context(given);
      } else {
        require(given.empty(), "unknown option \"", given, "\": this target has none");
        if constexpr (std::is_empty_v<Context>) {
          *context = &registry();
        } else {
          *context = new Context();
        }
      }
    });
  }

  template <class Context>
  void close(void* context) {
    if constexpr (std::is_constructible_v<Context, std::string_view> || !std::is_empty_v<Context>) {
      delete static_cast<Context*>(context);
    }
  }

  inline Registry make_registry(const char* name, const char* version, std::vector<const Operator*> operators) {
    Registry made;
    made.operators = std::move(operators);
    made.schema = R"({"fusediff_schema": 1, "threads": "shared_context", "operators": [)";
    for (const Operator* one : made.operators) {
      made.schema += one == made.operators.front() ? "\n" : ",\n";
      made.schema += one->schema;
    }
    made.schema += "\n]}\n";
    made.table.abi_version = FUSEDIFF_ABI_VERSION;
    made.table.struct_size = sizeof(fusediff_target_v1);
    made.table.name = name;
    made.table.version = version;
    made.table.schema = [] { return registry().schema.c_str(); };
    made.table.workspace_bytes = workspace_bytes;
    made.table.run = run;
    made.table.last_error = [] { return static_cast<const char*>(error_text); };
    return made;
  }

  template <class Context>
  const fusediff_target_v1* entry(const char* name, const char* version, std::vector<const Operator*> operators) {
    static const bool ready = [&] {
      Registry& made = registry();
      made = make_registry(name, version, std::move(operators));
      made.table.open = open<Context>;
      made.table.close = close<Context>;
      return true;
    }();
    return ready ? &registry().table : nullptr;
  }

  // Addresses of the operators that the macro lists.
  template <class... Operators>
  std::vector<const Operator*> listed(const Operators&... operators) {
    return {&operators...};
  }

  }  // namespace detail
}  // namespace )
}  // namespace fusediff

// Exports the target: name, version, then one line an operator. At most once in a library, outside every namespace;
// the operators must have static storage.
#define FUSEDIFF_KIT_TARGET(name, version, ...) \
  FUSEDIFF_KIT_TARGET_WITH_CONTEXT(::fusediff::kit::NoContext, name, version, __VA_ARGS__)

// As above; each open() makes a Context, which call.context<Context>() reaches.
#define FUSEDIFF_KIT_TARGET_WITH_CONTEXT(Context, name, version, ...)                                            \
  extern "C" FUSEDIFF_EXPORT const fusediff_target_v1* fusediff_target(void) {                                   \
    return ::fusediff::kit::detail::entry<Context>(name, version, ::fusediff::kit::detail::listed(__VA_ARGS__)); \
  }
