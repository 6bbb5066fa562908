// How an operator of a target says no: it throws, and the entry of target.h turns that into a status and a text.
// No exception of these, or of any other kind, leaves the target. Nothing here is needed for a call that succeeds.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "fusediff_target.h"

namespace fusediff {
namespace kit __attribute__((visibility("hidden"))) {

  // A status other than FUSEDIFF_OK with one line of text.
  class Failure : public std::exception {
   public:
    Failure(fusediff_status status, std::string text) : status_(status), text_(std::move(text)) {}
    fusediff_status status() const { return status_; }
    const char* what() const noexcept override { return text_.c_str(); }

   private:
    fusediff_status status_;
    std::string text_;
  };

  inline void append_text(std::string & line, std::string_view part) { line += part; }
  inline void append_text(std::string & line, int64_t part) { line += std::to_string(part); }
  inline void append_text(std::string & line, int part) { line += std::to_string(part); }

  // The parts (texts and integers) joined to one line.
  template <class... Parts>
  std::string line_of(const Parts&... parts) {
    std::string line;
    (append_text(line, parts), ...);
    return line;
  }

  // This operator, path, dtype or shape is not offered: the case is skipped and counted.
  template <class... Parts>
  [[noreturn]] void unsupported(const Parts&... parts) {
    throw Failure(FUSEDIFF_UNSUPPORTED, line_of(parts...));
  }

  // The call breaks a rule of the operator.
  template <class... Parts>
  [[noreturn]] void reject(const Parts&... parts) {
    throw Failure(FUSEDIFF_REJECTED, line_of(parts...));
  }

  // It should have worked and did not.
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) {
    throw Failure(FUSEDIFF_FAILED, line_of(parts...));
  }

  // Rejects the call unless `holds`. The text is built only then.
  template <class... Parts>
  void require(bool holds, const Parts&... parts) {
    if (!holds) [[unlikely]] {
      reject(parts...);
    }
  }

}  // namespace )
}  // namespace fusediff
