#include "server/api_error.h"

#include <utility>

namespace sluice {

ApiError& ApiError::with_param(std::string param) {
  param_ = std::move(param);
  return *this;
}

ApiError& ApiError::with_code(std::string code) {
  code_ = std::move(code);
  return *this;
}

ApiError& ApiError::with_retry_after(int seconds) {
  retry_after_ = seconds;
  return *this;
}

std::string_view ApiError::type() const {
  switch (status_) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    default: return status_ >= 500 ? "server_error" : "invalid_request_error";
  }
}

Json ApiError::json() const {
  auto text_or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"error",
           {{"message", what()}, {"type", type()}, {"param", text_or_null(param_)}, {"code", text_or_null(code_)}}}};
}

void fail_field(const std::string& path, const std::string& message) {
  throw ApiError(400, path + ": " + message).with_param(path);
}

}  // namespace sluice
