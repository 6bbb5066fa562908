# Build rules of the project: one static library per folder of src, so that the link line is the layering rule.
# Nothing here knows a folder by name. What is optional and missing is one line at configure time, never an error.

include_guard(GLOBAL)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Release keeps assert(): a fuzzer that goes on after a broken promise of its own reports nonsense. -g1 is line tables
# only, enough for a stack trace, at no measurable compile time.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_C_FLAGS_DEBUG "-Og -g")
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g -D_GLIBCXX_ASSERTIONS")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# fusediff_missing(WHAT PACKAGE CONSEQUENCE): the one line about an optional thing that is not here.
function(fusediff_missing what package consequence)
  message(STATUS "missing: ${what} (package ${package}): ${consequence}")
endfunction()

find_program(FUSEDIFF_CCACHE ccache)
if(FUSEDIFF_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${FUSEDIFF_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FUSEDIFF_CCACHE})
else()
  fusediff_missing(ccache ccache "every build compiles from scratch")
endif()

find_package(nlohmann_json 3.11 REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS program_options)
find_package(LibArchive 3.6 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Threads REQUIRED)
find_library(FUSEDIFF_XXHASH xxhash REQUIRED)

option(BUILD_TESTING "build the tests" ON)
if(BUILD_TESTING)
  find_package(GTest 1.12 QUIET)
  if(NOT GTest_FOUND)
    fusediff_missing(GoogleTest "libgtest-dev libgmock-dev" "the unit tests are not built")
  endif()
  include(GoogleTest)
endif()

# -ffp-contract=off: a fused multiply-add that the compiler chose would give other bits on another machine.
add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Werror -ffp-contract=off)

set(FUSEDIFF_SANITIZE "" CACHE STRING "comma list for -fsanitize, e.g. address,undefined")
set(FUSEDIFF_TEST_TIMEOUT 300)
if(FUSEDIFF_SANITIZE)
  add_compile_options(-fsanitize=${FUSEDIFF_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_compile_definitions($<$<COMPILE_LANGUAGE:CXX>:_GLIBCXX_ASSERTIONS>)
  add_link_options(-fsanitize=${FUSEDIFF_SANITIZE})
  set(FUSEDIFF_TEST_TIMEOUT 900)
endif()

option(FUSEDIFF_COVERAGE "count executed lines, for gcov" OFF)
if(FUSEDIFF_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(FUSEDIFF_TARGET_DIRECTORY ${PROJECT_BINARY_DIR}/bin/targets)

# What a run needs and a test does not: the programs and the operator targets. scripts/fuzz builds this and no more.
add_custom_target(product)

# fusediff_library(NAME SOURCES a.cpp ... [TESTS a_test.cpp ...] [DEPS other ...])
# The library fd_NAME of src/NAME, and one test program NAME_test of all its tests.
function(fusediff_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;DEPS" ${ARGN})
  add_library(fd_${name} STATIC ${ARG_SOURCES})
  target_include_directories(fd_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  fusediff_link(fd_${name} PUBLIC ${ARG_DEPS})
  if(ARG_TESTS)
    fusediff_test(${name}_test SOURCES ${ARG_TESTS} DEPS fd_${name})
  endif()
endfunction()

# fusediff_program(NAME SOURCES ... DEPS ...): the program bin/NAME, part of the product.
function(fusediff_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  fusediff_link(${name} PRIVATE ${ARG_DEPS})
  add_dependencies(product ${name})
endfunction()

# fusediff_link(TARGET PUBLIC|PRIVATE dep ...): a dep is the name of a folder of src, or a library.
function(fusediff_link target scope)
  foreach(dep ${ARGN})
    if(TARGET fd_${dep} OR IS_DIRECTORY ${PROJECT_SOURCE_DIR}/src/${dep})
      target_link_libraries(${target} ${scope} fd_${dep})
    else()
      target_link_libraries(${target} ${scope} ${dep})
    endif()
  endforeach()
endfunction()

# fusediff_test(NAME SOURCES ... DEPS libraries ...): a GoogleTest program, each of its tests known to CTest.
function(fusediff_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(NOT BUILD_TESTING OR NOT GTest_FOUND)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest_main GTest::gmock)
  target_compile_definitions(${name} PRIVATE FUSEDIFF_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             FUSEDIFF_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  # PRE_TEST: the list of tests is read when CTest starts, so that a build runs nothing.
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${FUSEDIFF_TEST_TIMEOUT})
endfunction()

# fusediff_target(NAME SOURCES ... [DEFINES ...]): an operator target, the shared library NAME.so that sees
# fusediff_target.h and nothing else of the project.
function(fusediff_target name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEFINES" ${ARGN})
  add_library(target_${name} MODULE ${ARG_SOURCES})
  target_include_directories(target_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src/target ${PROJECT_SOURCE_DIR}/src/targets)
  target_compile_definitions(target_${name} PRIVATE ${ARG_DEFINES})
  set_target_properties(target_${name} PROPERTIES OUTPUT_NAME ${name} PREFIX "" SUFFIX ".so"
                        LIBRARY_OUTPUT_DIRECTORY ${FUSEDIFF_TARGET_DIRECTORY})
  add_dependencies(product target_${name})
endfunction()

# libFuzzer's archive with main(), the newest one installed. It is plain code that any C++ compiler links; only
# -fsanitize=fuzzer itself would need clang.
if(NOT FUSEDIFF_LIBFUZZER OR NOT EXISTS "${FUSEDIFF_LIBFUZZER}")
  unset(FUSEDIFF_LIBFUZZER CACHE)
  file(GLOB libfuzzer_found
       /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-${CMAKE_SYSTEM_PROCESSOR}.a
       /usr/lib/llvm-*/lib/clang/*/lib/${CMAKE_SYSTEM_PROCESSOR}-*linux-gnu/libclang_rt.fuzzer.a
       /usr/lib*/clang/*/lib/linux/libclang_rt.fuzzer-${CMAKE_SYSTEM_PROCESSOR}.a
       /usr/lib*/clang/*/lib/${CMAKE_SYSTEM_PROCESSOR}-*linux-gnu/libclang_rt.fuzzer.a)
  list(SORT libfuzzer_found COMPARE NATURAL ORDER DESCENDING)
  if(libfuzzer_found)
    list(GET libfuzzer_found 0 libfuzzer_newest)
    set(FUSEDIFF_LIBFUZZER ${libfuzzer_newest} CACHE FILEPATH "libclang_rt.fuzzer, the archive with main()")
  else()
    fusediff_missing(libFuzzer libclang-rt-dev "fusediff-worker and the self-fuzzers are not built, fusediff fuzz cannot run")
  endif()
endif()

# fusediff_fuzzer(NAME SOURCES ... DEPS ...): a plain libFuzzer program, part of the product; no target at all where
# libFuzzer is missing (ask with if(TARGET NAME)). The feedback is extra counters, an array like
#   __attribute__((section("__libfuzzer_extra_counters"), used)) static volatile uint8_t counters[N];
# volatile, because nothing in the program reads it and the compiler would drop the stores.
function(fusediff_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(NOT FUSEDIFF_LIBFUZZER)
    return()
  endif()
  fusediff_program(${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_DEPS})
  # Whole: the archive's own hooks must be there for code that is loaded later.
  target_link_libraries(${name} PRIVATE "-Wl,--whole-archive,${FUSEDIFF_LIBFUZZER},--no-whole-archive"
                                        Threads::Threads ${CMAKE_DL_LIBS} m stdc++)
endfunction()
