#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include <fmt/format.h>

namespace sluice::jinja {

/// A failure while a template runs; the interpreter adds the template's name and line.
class RenderError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class... Args>
[[noreturn]] void render_error(fmt::format_string<Args...> format, Args&&... args) {
  throw RenderError(fmt::format(format, std::forward<Args>(args)...));
}

// What a template may use. Templates come from checkpoints, and values from requests: neither is trusted.
inline constexpr size_t max_source_bytes = size_t{1} << 20;
inline constexpr int max_parse_depth = 200;       // nesting of expressions and of blocks
inline constexpr int max_evaluation_depth = 800;  // nested evaluations, macro calls included
inline constexpr int max_value_depth = 200;       // lists in lists
inline constexpr uint64_t max_steps = 5'000'000;
inline constexpr uint64_t max_total_bytes = uint64_t{1} << 30;  // all that one rendering ever allocates
inline constexpr size_t max_string_bytes = size_t{64} << 20;    // one string, the output included
inline constexpr size_t max_items = size_t{1} << 20;            // one list or dict
inline constexpr int64_t max_range = 100'000;                   // as jinja2's sandbox

/// Counts what one rendering uses. Both counts only grow, so they bound time and memory whatever is freed.
class Budget {
 public:
  /// One step is about the work of evaluating one small expression or of reading 64 bytes.
  void spend(uint64_t steps) {
    steps_ += steps;
    if (steps_ > max_steps) render_error("the template takes more than {} steps", max_steps);
  }
  void allocate(uint64_t bytes) {
    bytes_ += bytes;
    if (bytes_ > max_total_bytes) render_error("the template uses more than {} MiB", max_total_bytes >> 20);
    spend(bytes / 1024);
  }
  /// To be called before a string of that size is made.
  void allocate_string(uint64_t bytes) {
    if (bytes > max_string_bytes) render_error("a string grows beyond {} MiB", max_string_bytes >> 20);
    allocate(bytes);
  }
  /// To be called before a list or dict of that size is made.
  void allocate_items(uint64_t count) {
    if (count > max_items) render_error("a list grows beyond {} items", max_items);
    allocate(count * 32);
    spend(count / 8);
  }
  /// Reading a string of that size.
  void read(uint64_t bytes) { spend(bytes / 64); }

 private:
  uint64_t steps_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace sluice::jinja
