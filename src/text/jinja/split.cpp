#include "text/jinja/split.h"

#include <algorithm>
#include <utility>

#include "text/jinja/budget.h"
#include "text/jinja/characters.h"

namespace sluice::jinja {

namespace {

void check_count(size_t count) {
  if (count > max_items) render_error("a list grows beyond {} items", max_items);
}

/// Start and end of every run of characters that are no white space.
std::vector<std::pair<size_t, size_t>> words_of(std::string_view text) {
  std::vector<std::pair<size_t, size_t>> words;
  bool inside = false;
  for (size_t position = 0; position < text.size();) {
    const size_t start = position;
    const bool space = is_space(next_character(text, position));
    if (!space && !inside) words.emplace_back(start, position);
    check_count(words.size());
    if (!space) words.back().second = position;
    inside = !space;
  }
  return words;
}

bool ends_line(char32_t character) {
  return (character >= 10 && character <= 13) || (character >= 0x1C && character <= 0x1E) || character == 0x85 ||
         character == 0x2028 || character == 0x2029;
}

}  // namespace

std::vector<std::string_view> split_text(std::string_view text, std::optional<std::string_view> separator,
                                         int64_t limit) {
  std::vector<std::string_view> parts;
  const auto full = [&] { return limit >= 0 && static_cast<int64_t>(parts.size()) >= limit; };
  if (!separator) {
    for (const auto& [start, end] : words_of(text)) {
      if (full()) {
        parts.push_back(strip(text.substr(start), std::nullopt, true, false));
        break;
      }
      parts.push_back(text.substr(start, end - start));
    }
    return parts;
  }
  size_t start = 0;
  while (!full()) {
    const size_t found = find_text(text, *separator, start);
    if (found == text.npos) break;
    check_count(parts.size());
    parts.push_back(text.substr(start, found - start));
    start = found + separator->size();
  }
  parts.push_back(text.substr(start));
  return parts;
}

std::vector<std::string_view> split_text_from_right(std::string_view text, std::optional<std::string_view> separator,
                                                    int64_t limit) {
  std::vector<std::string_view> parts;
  const auto full = [&] { return limit >= 0 && static_cast<int64_t>(parts.size()) >= limit; };
  if (!separator) {
    auto words = words_of(text);
    for (; !words.empty(); words.pop_back()) {
      const auto [start, end] = words.back();
      if (full()) {
        parts.push_back(text.substr(0, end));
        break;
      }
      parts.push_back(text.substr(start, end - start));
    }
  } else {
    while (!full()) {
      const size_t found = text.rfind(*separator);
      if (found == text.npos) break;
      check_count(parts.size());
      parts.push_back(text.substr(found + separator->size()));
      text = text.substr(0, found);
    }
    parts.push_back(text);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t position = 0; position < text.size();) {
    const size_t end = position;
    const char32_t character = next_character(text, position);
    if (!ends_line(character)) continue;
    if (character == '\r' && position < text.size() && text[position] == '\n') ++position;
    check_count(lines.size());
    lines.push_back(text.substr(start, (keep_ends ? position : end) - start));
    start = position;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

}  // namespace sluice::jinja
