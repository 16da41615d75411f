#include "weights/gguf_block_name.h"

#include <charconv>

#include <fmt/format.h>

namespace sluice {

GgufBlockName parse_gguf_block_name(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return {};
  name.remove_prefix(prefix.size());
  std::int64_t block = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), block);
  const auto digits = static_cast<std::size_t>(end - name.data());
  if (error != std::errc() || digits == name.size() || *end != '.' || fmt::format("{}", block).size() != digits) {
    return {};
  }
  return {block, name.substr(digits + 1)};
}

}  // namespace sluice
