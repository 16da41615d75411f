#pragma once
#include <string>
#include <string_view>

namespace sluice {

/// The parts of "https://host:port/path".
struct ServerUrl {
  bool tls = false;
  std::string host;  // of an IPv6 address without the brackets
  std::string port;
  std::string path;  // empty, or with a slash in front and none behind

  /// As it stands in a Host header.
  std::string authority() const;
  std::string text() const;
};

/// The scheme may be left out (http), and so may the port; a path that ends with /v1 loses it. Throws UsageError.
ServerUrl parse_server_url(std::string_view text);

}  // namespace sluice
