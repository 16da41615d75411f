#pragma once
#include <cstdint>

namespace sluice {

/// a / b, rounded up; a >= 0, b > 0.
constexpr std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace sluice
