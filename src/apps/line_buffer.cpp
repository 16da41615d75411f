#include "apps/line_buffer.h"

#include <algorithm>

#include <utf8proc.h>

#include "text/unicode.h"

namespace sluice {

namespace {

constexpr std::string_view quotes = "\"\"\"";

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t'; }

std::string_view without_blanks_before(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t\n"), text.size()));
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const DecodedCharacter character = decode_character(text);
    width += std::max(0, utf8proc_charwidth(static_cast<utf8proc_int32_t>(character.code_point)));
    text.remove_prefix(character.length);
  }
  return width;
}

void LineBuffer::set(std::string text) {
  text_ = std::move(text);
  cursor_ = text_.size();
}

void LineBuffer::insert(std::string_view text) {
  std::string valid;
  append_valid_utf8(valid, text);
  text_.insert(cursor_, valid);
  cursor_ += valid.size();
}

/// A combining character moves with the one before it.
std::size_t LineBuffer::previous(std::size_t position) const {
  while (position > 0) {
    do --position;
    while (position > 0 && (static_cast<unsigned char>(text_[position]) & 0xC0u) == 0x80u);
    if (text_[position] == '\n' ||
        display_width(std::string_view(text_).substr(position, next(position) - position)) > 0)
      break;
  }
  return position;
}

std::size_t LineBuffer::next(std::size_t position) const {
  const std::string_view rest = std::string_view(text_).substr(position);
  if (rest.empty()) return position;
  std::size_t end = decode_character(rest).length;
  while (end < rest.size() && rest[end] != '\n') {
    const DecodedCharacter character = decode_character(rest.substr(end));
    if (display_width(rest.substr(end, character.length)) > 0) break;
    end += character.length;
  }
  return position + end;
}

void LineBuffer::erase(std::size_t begin, std::size_t end) {
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

void LineBuffer::erase_before() { erase(previous(cursor_), cursor_); }
void LineBuffer::erase_after() { erase(cursor_, next(cursor_)); }
void LineBuffer::left() { cursor_ = previous(cursor_); }
void LineBuffer::right() { cursor_ = next(cursor_); }

void LineBuffer::word_left() {
  while (cursor_ > 0 && is_blank(text_[cursor_ - 1])) --cursor_;
  while (cursor_ > 0 && !is_blank(text_[cursor_ - 1])) --cursor_;
}

void LineBuffer::word_right() {
  while (cursor_ < text_.size() && is_blank(text_[cursor_])) ++cursor_;
  while (cursor_ < text_.size() && !is_blank(text_[cursor_])) ++cursor_;
}

void LineBuffer::line_start() { cursor_ = cursor_ == 0 ? 0 : text_.rfind('\n', cursor_ - 1) + 1; }
void LineBuffer::line_end() { cursor_ = std::min(text_.find('\n', cursor_), text_.size()); }
void LineBuffer::kill_to_line_end() { erase(cursor_, std::min(text_.find('\n', cursor_), text_.size())); }

void LineBuffer::kill_to_line_start() {
  const std::size_t end = cursor_;
  line_start();
  erase(cursor_, end);
}

void LineBuffer::kill_word_before() {
  const std::size_t end = cursor_;
  word_left();
  erase(cursor_, end);
}

void InputHistory::add(const std::string& input) {
  if (!input.empty() && (inputs_.empty() || inputs_.back() != input)) inputs_.push_back(input);
  shown_.clear();
}

void InputHistory::begin(const std::string& current) {
  if (shown_.empty()) {
    shown_ = inputs_;
    shown_.emplace_back();
    position_ = inputs_.size();
  }
  shown_[position_] = current;
}

std::string InputHistory::older(const std::string& current) {
  begin(current);
  if (position_ > 0) --position_;
  return shown_[position_];
}

std::string InputHistory::newer(const std::string& current) {
  begin(current);
  if (position_ + 1 < shown_.size()) ++position_;
  return shown_[position_];
}

bool is_complete_input(std::string_view text) {
  const std::string_view content = without_blanks_before(text);
  if (content.substr(0, quotes.size()) == quotes) return content.find(quotes, quotes.size()) != std::string_view::npos;
  return text.empty() || text.back() != '\\';
}

std::string message_of_input(std::string_view text) {
  const std::string_view content = without_blanks_before(text);
  if (content.substr(0, quotes.size()) == quotes) {
    std::string message(content.substr(quotes.size()));
    const std::size_t end = message.find(quotes);
    if (end != std::string::npos) message.erase(end, quotes.size());
    const std::size_t first = message.find_first_not_of('\n');
    return first == std::string::npos ? "" : message.substr(first, message.find_last_not_of("\n ") + 1 - first);
  }
  std::string message;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool continues = text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '\n';
    if (!continues) message += text[i];
  }
  return message;
}

}  // namespace sluice
