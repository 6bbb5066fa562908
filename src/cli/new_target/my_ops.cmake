# my_ops.so and its tests:
#   cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure
cmake_minimum_required(VERSION 3.18)
project(my_ops LANGUAGES CXX)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# fusediff/: its headers, copied here so that this folder needs nothing else to build.
add_library(target_my_ops MODULE my_ops.cpp)
target_include_directories(target_my_ops PRIVATE fusediff)
set_target_properties(target_my_ops PROPERTIES OUTPUT_NAME my_ops PREFIX "" SUFFIX .so)
# target_link_libraries(target_my_ops PRIVATE your_library)

enable_testing()
add_executable(unit_my_ops my_ops.cpp my_ops_test.cpp)
target_include_directories(unit_my_ops PRIVATE fusediff)
add_test(NAME my_ops.unit COMMAND unit_my_ops)

# Five seconds of fuzzing must find nothing.
find_program(FUSEDIFF fusediff HINTS [==[@PROGRAM_FOLDER@]==] DOC "the program fusediff")
if(FUSEDIFF)
  add_test(NAME my_ops.forget COMMAND ${CMAKE_COMMAND} -E remove_directory fuzz)
  add_test(NAME my_ops.fuzz COMMAND ${FUSEDIFF} fuzz --target $<TARGET_FILE:target_my_ops> --time 5 --out fuzz)
  set_tests_properties(my_ops.forget PROPERTIES FIXTURES_SETUP my_ops.fresh)
  set_tests_properties(my_ops.fuzz PROPERTIES FIXTURES_REQUIRED my_ops.fresh)
else()
  message(STATUS "missing: fusediff: my_ops.fuzz is no test here; -DFUSEDIFF=FILE says where it is")
endif()
