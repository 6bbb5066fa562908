// Status and Result: how an error travels. Nothing here throws, prints or exits.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace fusediff {

// Whose error it is: the user's ends in exit code 2, ours in 3.
enum class Blame { kUser, kOurs };

// One line: what is wrong, where, and what would be right.
struct Error {
  Blame blame = Blame::kUser;
  std::string what;
};

inline Error user_error(std::string what) { return {Blame::kUser, std::move(what)}; }
inline Error our_error(std::string what) { return {Blame::kOurs, std::move(what)}; }

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  // REQUIRES: !ok().
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  // REQUIRES: !ok().
  const Error& error() const { return std::get<1>(state_); }
  // REQUIRES: ok().
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace fusediff
