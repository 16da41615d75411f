#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice {

StopMatcher::StopMatcher(const std::vector<std::string>& strings) {
  for (const std::string& text : strings) {
    if (text.empty()) fail<RequestError>("a stop string must not be empty");
    Pattern pattern{text, std::vector<std::uint32_t>(text.size(), 0), 0};
    std::uint32_t length = 0;
    for (std::size_t i = 1; i < text.size(); ++i) {
      while (length > 0 && text[i] != text[length]) length = pattern.border[length - 1];
      if (text[i] == text[length]) ++length;
      pattern.border[i] = length;
    }
    patterns_.push_back(std::move(pattern));
  }
}

std::size_t StopMatcher::add(char byte) {
  std::size_t longest = 0;
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    Pattern& pattern = patterns_[i];
    std::size_t& matched = pattern.matched;
    while (matched > 0 && byte != pattern.text[matched]) matched = pattern.border[matched - 1];
    if (byte == pattern.text[matched]) ++matched;
    if (matched < pattern.text.size()) continue;
    if (matched > longest) found_ = i;
    longest = std::max(longest, matched);
    matched = pattern.border[matched - 1];
  }
  return longest;
}

std::size_t StopMatcher::begun() const {
  std::size_t longest = 0;
  for (const Pattern& pattern : patterns_) longest = std::max(longest, pattern.matched);
  return longest;
}

std::string StopCutter::add(std::string_view text) {
  if (stopped_) return {};
  for (char byte : text) {
    held_ += byte;
    if (const std::size_t length = matcher_.add(byte); length > 0) {
      stopped_ = true;
      if (!include_stop_) held_.resize(held_.size() - length);
      return std::exchange(held_, {});
    }
  }
  std::string shown = held_.substr(0, held_.size() - matcher_.begun());
  held_.erase(0, shown.size());
  return shown;
}

std::string StopCutter::finish() { return std::exchange(held_, {}); }

namespace {

class StopStrings : public StopCheck {
 public:
  StopStrings(const std::shared_ptr<const Tokenizer>& tokenizer, const std::vector<std::string>& strings)
      : streams_{{Detokenizer(tokenizer, true), StopMatcher(strings)},
                 {Detokenizer(tokenizer, false), StopMatcher(strings)}} {}

  bool stops_at(TokenId token) override {
    bool stops = false;
    for (Stream& stream : streams_)
      for (char byte : stream.text.add(token)) stops |= stream.matcher.add(byte) > 0;
    return stops;
  }

 private:
  struct Stream {
    Detokenizer text;
    StopMatcher matcher;
  };
  Stream streams_[2];  // without and with special tokens
};

}  // namespace

std::unique_ptr<StopCheck> make_stop_strings(std::shared_ptr<const Tokenizer> tokenizer,
                                             std::vector<std::string> strings) {
  return std::make_unique<StopStrings>(std::move(tokenizer), strings);
}

}  // namespace sluice
