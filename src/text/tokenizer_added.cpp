#include "text/tokenizer_added.h"

#include "text/unicode.h"

namespace sluice {

namespace {

/// The end of the white space that begins at a place.
std::size_t after_space(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const DecodedCharacter character = decode_character(text.substr(at));
    if (!(classes_of(character.code_point) & space_class)) break;
    at += character.length;
  }
  return at;
}

/// The beginning, not before `floor`, of the white space that ends at a place.
std::size_t before_space(std::string_view text, std::size_t floor, std::size_t at) {
  while (at > floor) {
    std::size_t begin = at - 1;
    while (begin > floor && (static_cast<std::uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
    if (!(classes_of(decode_character(text.substr(begin)).code_point) & space_class)) break;
    at = begin;
  }
  return at;
}

}  // namespace

/// The node of a byte in a list of siblings; added to the list if it is not there.
std::uint32_t AddedTokenMatcher::sibling_with(std::uint32_t& first, char byte) {
  std::uint32_t node = first, last = none;
  while (node != none && nodes_[node].byte != byte) node = nodes_[last = node].sibling;
  if (node != none) return node;
  node = static_cast<std::uint32_t>(nodes_.size());
  (last == none ? first : nodes_[last].sibling) = node;
  nodes_.push_back({.byte = byte});
  return node;
}

void AddedTokenMatcher::add(const AddedToken& token) {
  std::uint32_t node = none;
  for (char byte : token.content)
    node = sibling_with(node == none ? roots_[static_cast<std::uint8_t>(byte)] : nodes_[node].child, byte);
  nodes_[node].token = static_cast<std::uint32_t>(tokens_.size());
  tokens_.push_back(token);
}

AddedTokenMatcher::Match AddedTokenMatcher::longest_at(std::string_view text, std::size_t begin) const {
  Match longest;
  std::uint32_t node = roots_[static_cast<std::uint8_t>(text[begin])];
  for (std::size_t at = begin; at < text.size(); ++at) {
    while (node != none && nodes_[node].byte != text[at]) node = nodes_[node].sibling;
    if (node == none) break;
    if (nodes_[node].token != none) longest = {at + 1, nodes_[node].token};
    node = nodes_[node].child;
  }
  return longest;
}

std::vector<AddedTokenMatcher::Segment> AddedTokenMatcher::split(std::string_view text, bool recognize_special) const {
  std::vector<Segment> segments;
  std::size_t done = 0, at = 0;
  while (at < text.size()) {
    const Match match = longest_at(text, at);
    if (match.token == none) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[match.token];
    const std::size_t begin = token.lstrip ? before_space(text, done, at) : at;
    at = match.end;
    if (token.special && !recognize_special) continue;
    if (token.rstrip) at = after_space(text, at);
    if (begin > done) segments.push_back({text.substr(done, begin - done), std::nullopt});
    segments.push_back({text.substr(begin, at - begin), token.id});
    done = at;
  }
  if (done < text.size()) segments.push_back({text.substr(done), std::nullopt});
  return segments;
}

}  // namespace sluice
