#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace sluice {

/// Why a request gets no answer, or an incomplete one: an HTTP status and OpenAI's error object.
class ApiError : public Error {
 public:
  explicit ApiError(int status, const std::string& message) : Error(message), status_(status) {}
  /// The field at fault, as a path: "messages[1].content".
  ApiError& with_param(std::string param);
  /// A machine-readable word: "model_not_found".
  ApiError& with_code(std::string code);
  ApiError& with_retry_after(int seconds);

  int status() const { return status_; }
  std::optional<int> retry_after() const { return retry_after_; }
  /// "invalid_request_error", "authentication_error", ...: follows from the status.
  std::string_view type() const;
  /// {"error": {"message", "type", "param", "code"}}
  Json json() const;

 private:
  int status_;
  std::string param_, code_;
  std::optional<int> retry_after_;
};

/// A 400: "PATH: MESSAGE", with the path as its param.
[[noreturn]] void fail_field(const std::string& path, const std::string& message);

}  // namespace sluice
