#pragma once
#include <string_view>

// Files that the program carries; cmake/embed_files.cmake makes the definitions.
namespace sluice {

/// The chat page, whole: it loads nothing else.
std::string_view page_html();
/// The header Content-Security-Policy to send with the page: its own script and style by their hashes, requests to this
/// server only.
std::string_view page_content_security_policy();
/// The description of the HTTP interface, OpenAPI 3.
std::string_view openapi_json();

}  // namespace sluice
