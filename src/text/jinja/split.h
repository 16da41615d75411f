#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace sluice::jinja {

/// Python's str.split and rsplit; without separator at runs of white space. A negative limit is none.
std::vector<std::string_view> split_text(std::string_view text, std::optional<std::string_view> separator,
                                         int64_t limit);
std::vector<std::string_view> split_text_from_right(std::string_view text, std::optional<std::string_view> separator,
                                                    int64_t limit);
/// Python's str.splitlines.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

}  // namespace sluice::jinja
