#include "text/jinja/text_functions.h"

#include "text/jinja/characters.h"

namespace sluice::jinja {

std::string_view strip_text(Budget& budget, std::string_view text, std::optional<std::string_view> set, bool left,
                            bool right) {
  // A short set costs nothing beside reading; with a long one every character is searched for in it.
  if (set && set->size() > 64) budget.spend(text.size() / 64 * (set->size() / 16));
  const std::string_view stripped = strip(text, set, left, right);
  budget.read(text.size() - stripped.size());
  return stripped;
}

std::string replace_text(Budget& budget, std::string_view text, std::string_view old, std::string_view replacement,
                         int64_t limit) {
  budget.read(text.size());
  std::string replaced;
  size_t start = 0;
  const auto check_size = [&] {
    if (replaced.size() > max_string_bytes) render_error("a string grows beyond {} MiB", max_string_bytes >> 20);
  };
  for (int64_t done = 0; limit < 0 || done < limit; ++done) {
    check_size();
    if (old.empty()) {  // before every character and at the end
      replaced += replacement;
      if (start >= text.size()) return replaced;
      const size_t before = start;
      next_character(text, start);
      replaced += text.substr(before, start - before);
      continue;
    }
    const size_t found = find_text(text, old, start);
    if (found == text.npos) break;
    replaced += text.substr(start, found - start);
    replaced += replacement;
    start = found + old.size();
  }
  if (start < text.size()) replaced += text.substr(start);
  return replaced;
}

std::string center_text(Budget& budget, std::string_view text, int64_t width, char32_t fill) {
  const auto length = static_cast<int64_t>(count_characters(text));
  if (width <= length) return std::string(text);
  budget.allocate_string(text.size() + static_cast<uint64_t>(width - length) * 4);
  const int64_t missing = width - length;
  const int64_t left = missing / 2 + (missing & width & 1);
  std::string centered;
  for (int64_t i = 0; i < left; ++i) append_character(centered, fill);
  centered += text;
  for (int64_t i = left; i < missing; ++i) append_character(centered, fill);
  return centered;
}

bool is_all_case(std::string_view text, bool upper) {
  bool any = false;
  for (size_t position = 0; position < text.size();) {
    const char32_t character = next_character(text, position);
    const bool wrong = (upper ? is_lower(character) : is_upper(character)) || is_title(character);
    if (wrong) return false;
    any |= upper ? is_upper(character) : is_lower(character);
  }
  return any;
}

}  // namespace sluice::jinja
