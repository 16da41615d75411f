#pragma once
#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace sluice {

/// A bug of ours, never a user's mistake: carries file, line and values.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void check_failed(const char* file, int line, const char* condition, const std::string& values) {
  throw InternalError(fmt::format("internal error at {}:{}: {} does not hold{}{}", file, line, condition,
                                  values.empty() ? "" : ": ", values));
}

}  // namespace sluice

/// CHECK(condition) or CHECK(condition, "format", values...): throws InternalError when false, in every
/// build.
#define CHECK(condition, ...)                                                              \
  do {                                                                                     \
    if (!(condition)) [[unlikely]]                                                         \
      ::sluice::check_failed(__FILE__, __LINE__, #condition, fmt::format("" __VA_ARGS__)); \
  } while (false)
