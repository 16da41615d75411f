#pragma once
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace sluice {

/// What a user can cause: one clear message (what, where, found against expected, what to do), exit code 1.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file or checkpoint that cannot be used.
class LoadError : public Error {
 public:
  using Error::Error;
};

/// A device that failed or is missing.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// A request that is wrong in itself: it ends alone, with this message.
class RequestError : public Error {
 public:
  using Error::Error;
};

/// Too many requests wait already: this one may come again later.
class QueueFullError : public Error {
 public:
  using Error::Error;
};

/// A command line that is wrong: exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Throws ErrorType with a formatted message: `fail<LoadError>("{}: truncated at byte {}", path, n)`.
template <class ErrorType, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw ErrorType(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace sluice
