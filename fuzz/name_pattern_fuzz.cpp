// A pattern of a config file must be compiled or refused, and be matched in bounded time: first line the pattern, the
// rest the name.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weights/name_pattern.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  const std::string_view pattern = text.substr(0, end);
  const std::string_view name = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  if (const auto regex = sluice::NamePattern::regex(pattern)) regex->matches(name);
  if (const auto wildcard = sluice::NamePattern::wildcard(pattern)) wildcard->matches(name);
  return 0;
}
