#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"

namespace sluice {

/// A token that is looked for in text before anything else.
struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool special = false;
  bool normalized = false;              // looked for after normalization, in normalized form
  bool lstrip = false, rstrip = false;  // takes the white space before, after it
};

/// Finds added tokens in text, the leftmost first and the longest of those.
class AddedTokenMatcher {
 public:
  /// Where the text is cut: a token with its white space, or plain text.
  struct Segment {
    std::string_view text;
    std::optional<TokenId> token;
  };

  AddedTokenMatcher() { roots_.fill(none); }
  void add(const AddedToken& token);
  /// The segments of text, in order. Tokens marked special are plain text unless recognize_special.
  std::vector<Segment> split(std::string_view text, bool recognize_special) const;

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  /// One byte of the contents, as a tree; the children of a node are a list.
  struct Node {
    char byte = 0;
    std::uint32_t child = none, sibling = none;
    std::uint32_t token = none;  // index of the token that ends here
  };
  struct Match {
    std::size_t end = 0;
    std::uint32_t token = none;
  };
  std::uint32_t sibling_with(std::uint32_t& first, char byte);
  Match longest_at(std::string_view text, std::size_t begin) const;

  std::array<std::uint32_t, 256> roots_;  // by first byte
  std::vector<Node> nodes_;
  std::vector<AddedToken> tokens_;
};

}  // namespace sluice
