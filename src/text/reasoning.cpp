#include "text/reasoning.h"

namespace sluice {

namespace {
constexpr std::string_view white_space = " \t\r\n";
}

void ReplyText::add(std::string_view text, std::string& out) {
  const std::size_t first = text.find_first_not_of(white_space);
  if (!space_kept_) space_ += text.substr(0, first);
  if (first == std::string_view::npos) return;
  release(out);
  const std::size_t end = text.find_last_not_of(white_space) + 1;
  out += text.substr(first, end - first);
  space_ = text.substr(end);
}

/// Text follows: what was held back comes out, unless it only stood between a tag or a call and the text.
void ReplyText::release(std::string& out) {
  if (!began_ && after_call_) space_.clear();
  if (!began_ && strip_) space_.erase(0, space_.find_first_not_of("\r\n"));
  out += space_;
  space_.clear();
  began_ = true;
  after_call_ = space_kept_ = false;
}

void ReplyText::drop_space() {
  space_.clear();
  space_kept_ = false;
}

void ReplyText::call_follows() {
  after_call_ = true;
  space_kept_ = !space_.empty();
}

void ReplyText::finish(std::string& out) {
  if (!after_call_) release(out);
  drop_space();
}

}  // namespace sluice
