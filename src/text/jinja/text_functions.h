#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/budget.h"

namespace sluice::jinja {

// What string methods and filters share; all of it pays for its work.
std::string_view strip_text(Budget& budget, std::string_view text, std::optional<std::string_view> set, bool left,
                            bool right);
/// A negative limit is none.
std::string replace_text(Budget& budget, std::string_view text, std::string_view old, std::string_view replacement,
                         int64_t limit);
/// Python's str.center, which puts an odd character where it likes.
std::string center_text(Budget& budget, std::string_view text, int64_t width, char32_t fill);
/// Python's isupper or islower.
bool is_all_case(std::string_view text, bool upper);

}  // namespace sluice::jinja
