# A file of the source tree inside a library, so that an installed program needs nothing beside it.
#
# include(embed), then fusediff_embed(TARGET SYMBOL FILE): adds to TARGET the function
#   namespace fusediff { std::string_view SYMBOL(); }
# that gives the bytes of FILE (relative to the current source folder, or absolute), whatever they are and however many;
# rebuilt when FILE changes. Whoever uses it declares the function. Every byte becomes a number of an array: a string
# literal has limits of length that differ between compilers, and escapes.
#
# Run as a script (cmake -DFILE= -DSYMBOL= -DOUT= -P embed.cmake) it writes that source file.

if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${FILE}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  # 24 bytes a line.
  string(REPEAT "0x[0-9a-f][0-9a-f]," 24 line)
  string(REGEX REPLACE "(${line})" "\\1\n    " bytes "${bytes}")
  get_filename_component(name "${FILE}" NAME)
  # The zero behind the last byte keeps the array of an empty file legal.
  file(WRITE "${OUT}" "// ${name}, written by scripts/cmake/embed.cmake
#include <string_view>

namespace fusediff {
namespace {
constexpr unsigned char kBytes[] = {
    ${bytes}0x00};
}  // namespace

std::string_view ${SYMBOL}();
std::string_view ${SYMBOL}() { return {reinterpret_cast<const char *>(kBytes), sizeof(kBytes) - 1}; }
}  // namespace fusediff
")
  return()
endif()

include_guard(GLOBAL)

function(fusediff_embed target symbol file)
  get_filename_component(file "${file}" ABSOLUTE)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embed/${symbol}.cpp)
  file(RELATIVE_PATH shown ${PROJECT_SOURCE_DIR} ${file})
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DFILE=${file} -DSYMBOL=${symbol} -DOUT=${out} -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    DEPENDS ${file} ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    COMMENT "Embedding ${shown}"
    VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
