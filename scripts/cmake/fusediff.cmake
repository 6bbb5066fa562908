# Build rules of the project: one static library per folder of src, so that the link line is the layering rule.

include_guard(GLOBAL)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(FUSEDIFF_CCACHE ccache)
if(FUSEDIFF_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${FUSEDIFF_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FUSEDIFF_CCACHE})
else()
  message(STATUS "ccache: not found, every build compiles from scratch (package ccache)")
endif()

find_package(nlohmann_json 3.11 REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS program_options)
find_package(GTest 1.12 REQUIRED)
find_package(Threads REQUIRED)
find_library(FUSEDIFF_XXHASH xxhash REQUIRED)

# -ffp-contract=off: a fused multiply-add that the compiler chose would give other bits on another machine.
add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Werror -ffp-contract=off)

set(FUSEDIFF_SANITIZE "" CACHE STRING "comma list for -fsanitize, e.g. address,undefined")
if(FUSEDIFF_SANITIZE)
  add_compile_options(-fsanitize=${FUSEDIFF_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FUSEDIFF_SANITIZE})
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(FUSEDIFF_TARGET_DIRECTORY ${PROJECT_BINARY_DIR}/bin/targets)

# fusediff_library(NAME SOURCES a.cpp ... [TESTS a_test.cpp ...] [DEPS other ...])
# The library fd_NAME of src/NAME, and one test program NAME_test of all its tests.
function(fusediff_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;DEPS" ${ARGN})
  add_library(fd_${name} STATIC ${ARG_SOURCES})
  target_include_directories(fd_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  foreach(dep ${ARG_DEPS})
    if(TARGET fd_${dep} OR IS_DIRECTORY ${PROJECT_SOURCE_DIR}/src/${dep})
      target_link_libraries(fd_${name} PUBLIC fd_${dep})
    else()
      target_link_libraries(fd_${name} PUBLIC ${dep})
    endif()
  endforeach()
  if(ARG_TESTS)
    fusediff_test(${name}_test SOURCES ${ARG_TESTS} DEPS fd_${name})
  endif()
endfunction()

# fusediff_test(NAME SOURCES ... DEPS libraries ...): a GoogleTest program, each of its tests known to CTest.
function(fusediff_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest_main GTest::gmock)
  target_compile_definitions(${name} PRIVATE FUSEDIFF_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             FUSEDIFF_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()

include(GoogleTest)

# fusediff_target(NAME SOURCES ... [DEFINES ...]): an operator target, the shared library NAME.so that sees
# fusediff_target.h and nothing else of the project.
function(fusediff_target name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEFINES" ${ARGN})
  add_library(target_${name} MODULE ${ARG_SOURCES})
  target_include_directories(target_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src/target ${PROJECT_SOURCE_DIR}/src/targets)
  target_compile_definitions(target_${name} PRIVATE ${ARG_DEFINES})
  set_target_properties(target_${name} PROPERTIES OUTPUT_NAME ${name} PREFIX "" SUFFIX ".so"
                        LIBRARY_OUTPUT_DIRECTORY ${FUSEDIFF_TARGET_DIRECTORY})
endfunction()
