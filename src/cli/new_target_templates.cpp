#include "cli/new_target.h"

namespace fusediff {

// Embedded by CMakeLists.txt.
std::string_view new_target_cpp();
std::string_view new_target_cpp_test();
std::string_view new_target_cpp_cmake();
std::string_view new_target_cpp_readme();
std::string_view header_fusediff_target();
std::string_view header_kit_call();
std::string_view header_kit_draft();
std::string_view header_kit_draft_parts();
std::string_view header_kit_failure();
std::string_view header_kit_number();
std::string_view header_kit_record();
std::string_view header_kit_record_text();
std::string_view header_kit_rig();
std::string_view header_kit_schema();
std::string_view header_kit_target();
std::string_view header_kit_view();
std::string_view schema_keys();
std::string_view new_target_python();

namespace {

// The headers go along: the folder builds wherever it is copied or committed to, with the headers that it was written
// for, and this program needs no folder of headers beside it.
constexpr TemplateFile kCppFiles[] = {
    {"my_ops/my_ops.cpp", new_target_cpp, "two paths of softsign; yours go there", true},
    {"my_ops/my_ops_test.cpp", new_target_cpp_test, "a unit test", true},
    {"my_ops/CMakeLists.txt", new_target_cpp_cmake, "builds my_ops.so; its tests", true},
    {"my_ops/README.md", new_target_cpp_readme, "how to build and run it", true},
    {"my_ops/fusediff/SCHEMA.md", schema_keys, "every key of a record; the headers are beside it"},
    {"my_ops/fusediff/fusediff_target.h", header_fusediff_target, ""},
    {"my_ops/fusediff/kit/call.h", header_kit_call, ""},
    {"my_ops/fusediff/kit/draft.h", header_kit_draft, ""},
    {"my_ops/fusediff/kit/draft_parts.h", header_kit_draft_parts, ""},
    {"my_ops/fusediff/kit/failure.h", header_kit_failure, ""},
    {"my_ops/fusediff/kit/number.h", header_kit_number, ""},
    {"my_ops/fusediff/kit/record.h", header_kit_record, ""},
    {"my_ops/fusediff/kit/record_text.h", header_kit_record_text, ""},
    {"my_ops/fusediff/kit/rig.h", header_kit_rig, ""},
    {"my_ops/fusediff/kit/schema.h", header_kit_schema, ""},
    {"my_ops/fusediff/kit/target.h", header_kit_target, ""},
    {"my_ops/fusediff/kit/view.h", header_kit_view, ""},
};

constexpr std::string_view kCppNext =
    "  cmake -S @DIR@my_ops -B @DIR@my_ops/build && cmake --build @DIR@my_ops/build && ctest --test-dir "
    "@DIR@my_ops/build\n"
    "  fusediff fuzz --target @DIR@my_ops/build/my_ops.so --time 60 --out reports/my_ops\n";

constexpr TemplateFile kPythonFiles[] = {
    {"my_ops.py", new_target_python, "two paths of softsign; yours go there", true},
};

constexpr std::string_view kPythonNext = "  fusediff fuzz --target @DIR@my_ops.py --time 60 --out reports/my_ops\n";

constexpr Template kTemplates[] = {
    {"", "", kCppFiles, kCppNext},
    {"python", "the file NAME.py instead, a target in Python", kPythonFiles, kPythonNext},
};

}  // namespace

std::span<const Template> templates() { return kTemplates; }

}  // namespace fusediff
