#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "text/detokenizer.h"

namespace sluice {

/// A StopCheck over text: true at the token that completes one of the strings. Finds them across token
/// borders and inside one token, in the text with special tokens and in the text without them. No string may
/// be empty (RequestError).
std::unique_ptr<StopCheck> make_stop_strings(std::shared_ptr<const Tokenizer> tokenizer,
                                             std::vector<std::string> strings);

/// Looks for one of some strings in a stream of bytes, in constant time a byte (Knuth, Morris and Pratt).
class StopMatcher {
 public:
  /// Throws RequestError for an empty string.
  explicit StopMatcher(const std::vector<std::string>& strings);
  /// Takes the next byte. The length of the longest string that ends with it, 0 for none.
  std::size_t add(char byte);
  /// The string that add() reported last; empty before the first.
  std::string_view found() const { return found_ ? std::string_view(patterns_[*found_].text) : std::string_view(); }
  /// How many of the last bytes may be the beginning of a string.
  std::size_t begun() const;

 private:
  struct Pattern {
    std::string text;
    std::vector<std::uint32_t> border;  // [length]: of each beginning, its longest end that is also a beginning
    std::size_t matched = 0;
  };
  std::vector<Pattern> patterns_;
  std::optional<std::size_t> found_;
};

/// Holds text back while it may be the beginning of a stop string, and cuts it off at the one that ends first
/// (the longest, of those that end together), or after it.
class StopCutter {
 public:
  /// include_stop: the string that was found stays in the text.
  explicit StopCutter(const std::vector<std::string>& strings, bool include_stop = false)
      : matcher_(strings), include_stop_(include_stop) {}
  /// The text that can be shown; nothing more once a stop string was found.
  std::string add(std::string_view text);
  /// Text held back that turned out to be no stop string.
  std::string finish();
  bool stopped() const { return stopped_; }
  /// The string that was found; empty unless stopped().
  std::string_view stop() const { return stopped_ ? matcher_.found() : std::string_view(); }

 private:
  StopMatcher matcher_;
  bool include_stop_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace sluice
