#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

#include "text/unicode.h"

namespace sluice {

namespace {

/// Pieces up to this length are merged by scanning all pairs, which is quicker than a heap for words.
constexpr std::size_t scan_limit = 48;

bool is_printable_byte(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

struct ByteAlphabet {
  std::array<char32_t, 256> character{};
  std::array<std::int16_t, 512> byte{};  // by code point; -1: not in the alphabet

  ByteAlphabet() {
    byte.fill(-1);
    char32_t next = 256;
    for (unsigned value = 0; value < 256; ++value) {
      character[value] = is_printable_byte(value) ? value : next++;
      byte[character[value]] = static_cast<std::int16_t>(value);
    }
  }
};

const ByteAlphabet& byte_alphabet() {
  static const ByteAlphabet alphabet;
  return alphabet;
}

std::size_t hash_of(std::string_view text) { return std::hash<std::string_view>{}(text); }
std::uint32_t upper_half(std::size_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

std::uint64_t pair_of(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

std::size_t slots_for(std::size_t entries) { return std::bit_ceil(std::max<std::size_t>(16, entries * 2)); }

}  // namespace

std::string bytes_to_printable(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (char byte : bytes) append_utf8(text, byte_alphabet().character[static_cast<std::uint8_t>(byte)]);
  return text;
}

std::optional<std::string> printable_to_bytes(std::string_view text) {
  const ByteAlphabet& alphabet = byte_alphabet();
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char first = text[at];
    if (first > ' ' && first <= '~') {  // stands for itself
      bytes.push_back(first);
      ++at;
      continue;
    }
    const DecodedCharacter character = decode_character(text.substr(at));
    if (character.code_point >= alphabet.byte.size() || alphabet.byte[character.code_point] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(alphabet.byte[character.code_point]));
    at += character.length;
  }
  return bytes;
}

void Vocabulary::reserve(std::size_t tokens) {
  entries_.reserve(tokens);
  storage_.reserve(tokens * 14);
  if (slots_for(tokens) > slots_.size()) grow(slots_for(tokens));
}

Vocabulary::Added Vocabulary::add(std::string_view text, std::string_view bytes, TokenId id) {
  if (contains(id)) return Added::id_taken;
  if ((used_slots_ + 1) * 2 > slots_.size()) grow(slots_for(used_slots_ + 1));
  const std::size_t hash = hash_of(text);
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.id >= 0) return Added::text_taken;
  if (id >= size()) entries_.resize(static_cast<std::size_t>(id) + 1);
  entries_[id] = {storage_.size(), static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(bytes.size())};
  storage_.append(text).append(bytes);
  slot = {upper_half(hash), id};
  ++used_slots_;
  return Added::yes;
}

void Vocabulary::prefetch(std::string_view text) const {
  if (!slots_.empty()) __builtin_prefetch(&slots_[hash_of(text) & (slots_.size() - 1)]);
}

std::optional<TokenId> Vocabulary::find(std::string_view text) const {
  if (slots_.empty()) return std::nullopt;
  const TokenId id = slots_[slot_of(text, hash_of(text))].id;
  return id >= 0 ? std::optional(id) : std::nullopt;
}

void Vocabulary::find_all(std::span<const std::string_view> texts, std::span<TokenId> ids) const {
  if (slots_.empty()) return std::fill(ids.begin(), ids.end(), -1);
  std::vector<std::size_t> hashes(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    hashes[i] = hash_of(texts[i]);
    __builtin_prefetch(&slots_[hashes[i] & (slots_.size() - 1)]);
  }
  const auto likely_id = [&](std::size_t hash) { return std::max(slots_[hash & (slots_.size() - 1)].id, 0); };
  for (std::size_t hash : hashes) __builtin_prefetch(entries_.data() + likely_id(hash));
  for (std::size_t hash : hashes) __builtin_prefetch(storage_.data() + entries_[likely_id(hash)].begin);
  for (std::size_t i = 0; i < texts.size(); ++i) ids[i] = slots_[slot_of(texts[i], hashes[i])].id;
}

std::string_view Vocabulary::text_of(TokenId id) const {
  if (!contains(id)) return {};
  return std::string_view(storage_).substr(entries_[id].begin, entries_[id].text_length);
}

std::string_view Vocabulary::bytes_of(TokenId id) const {
  if (!contains(id)) return {};
  const Entry& entry = entries_[id];
  return std::string_view(storage_).substr(entry.begin + entry.text_length, entry.bytes_length);
}

/// The slot that holds the text, or the free one where it would go.
std::size_t Vocabulary::slot_of(std::string_view text, std::size_t hash) const {
  std::size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot].id >= 0 && (slots_[slot].hash != upper_half(hash) || text_of(slots_[slot].id) != text))
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void Vocabulary::grow(std::size_t slots) {
  std::vector<Slot> old(slots);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.id < 0) continue;
    const std::string_view text = text_of(slot.id);
    slots_[slot_of(text, hash_of(text))] = slot;
  }
}

void MergeTable::reserve(std::size_t merges) {
  if (slots_for(merges) > slots_.size()) grow(slots_for(merges));
}

void MergeTable::prefetch(TokenId left, TokenId right) const {
  if (!slots_.empty()) __builtin_prefetch(&slots_[home_of(pair_of(left, right))]);
}

bool MergeTable::add(TokenId left, TokenId right, Merge merge) {
  if ((used_slots_ + 1) * 2 > slots_.size()) grow(slots_for(used_slots_ + 1));
  const std::uint64_t pair = pair_of(left, right);
  Slot& slot = slots_[slot_of(pair)];
  if (slot.pair == pair) return false;
  slot = {pair, merge};
  ++used_slots_;
  return true;
}

MergeTable::Merge MergeTable::find(TokenId left, TokenId right) const {
  if (slots_.empty()) return {};
  const std::uint64_t pair = pair_of(left, right);
  return slots_[slot_of(pair)].merge;
}

std::size_t MergeTable::home_of(std::uint64_t pair) const {
  const std::uint64_t hash = (pair ^ pair >> 29) * 0x9E3779B97F4A7C15u;
  return (hash ^ hash >> 32) & (slots_.size() - 1);
}

/// The slot that holds the pair, or the free one (with no merge) where it would go.
std::size_t MergeTable::slot_of(std::uint64_t pair) const {
  std::size_t slot = home_of(pair);
  while (slots_[slot].pair != pair && slots_[slot].pair != free_slot) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void MergeTable::grow(std::size_t slots) {
  std::vector<Slot> old(slots);
  old.swap(slots_);
  for (const Slot& slot : old)
    if (slot.pair != free_slot) slots_[slot_of(slot.pair)] = slot;
}

void BytePairEncoder::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  if (whole_pieces_first) {
    if (const auto id = vocabulary.find(bytes_to_printable(piece))) return ids.push_back(*id);
  }
  std::array<TokenId, scan_limit> few;
  std::vector<TokenId> many;
  if (piece.size() > few.size()) many.resize(piece.size());
  TokenId* tokens = many.empty() ? few.data() : many.data();
  std::size_t count = 0;
  for (char byte : piece) {
    const TokenId token = byte_tokens[static_cast<std::uint8_t>(byte)];
    if (token >= 0) tokens[count++] = token;
  }
  if (count <= scan_limit)
    merge_by_scan({tokens, count}, ids);
  else
    merge_by_heap({tokens, count}, ids);
}

void BytePairEncoder::merge_by_scan(std::span<const TokenId> bytes, std::vector<TokenId>& ids) const {
  std::array<TokenId, scan_limit> tokens;
  std::array<MergeTable::Merge, scan_limit> pairs;  // of a token and its right neighbour
  std::size_t count = bytes.size();
  std::copy(bytes.begin(), bytes.end(), tokens.begin());
  for (std::size_t i = 0; i + 1 < count; ++i) pairs[i] = merges.find(tokens[i], tokens[i + 1]);
  while (count > 1) {
    const auto by_rank = [](const auto& a, const auto& b) { return a.rank < b.rank; };
    const auto best = std::min_element(pairs.begin(), pairs.begin() + (count - 1), by_rank);
    if (best->merged < 0) break;
    const std::size_t at = best - pairs.begin();
    tokens[at] = best->merged;
    std::copy(tokens.begin() + at + 2, tokens.begin() + count, tokens.begin() + at + 1);
    --count;
    if (at + 1 < count) std::copy(pairs.begin() + at + 2, pairs.begin() + count, pairs.begin() + at + 1);
    if (at + 1 < count) pairs[at] = merges.find(tokens[at], tokens[at + 1]);
    if (at > 0) pairs[at - 1] = merges.find(tokens[at - 1], tokens[at]);
  }
  ids.insert(ids.end(), tokens.begin(), tokens.begin() + count);
}

void BytePairEncoder::merge_by_heap(std::span<const TokenId> bytes, std::vector<TokenId>& ids) const {
  struct Symbol {
    TokenId token;  // -1: merged into the one before it
    std::uint32_t previous, next;
  };
  struct Candidate {
    std::uint32_t rank, at;
    TokenId left, right, merged;
    bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  const auto count = static_cast<std::uint32_t>(bytes.size());
  std::vector<Symbol> symbols(count);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto consider = [&](std::uint32_t at) {
    const std::uint32_t next = symbols[at].next;
    if (next == count) return;
    const MergeTable::Merge merge = merges.find(symbols[at].token, symbols[next].token);
    if (merge.merged >= 0) candidates.push({merge.rank, at, symbols[at].token, symbols[next].token, merge.merged});
  };
  for (std::uint32_t i = 0; i < count; ++i) symbols[i] = {bytes[i], i == 0 ? count : i - 1, i + 1};
  for (std::uint32_t i = 0; i < count; ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Symbol& left = symbols[best.at];
    if (left.token != best.left || left.next == count || symbols[left.next].token != best.right) continue;
    symbols[left.next].token = -1;
    left.token = best.merged;
    left.next = symbols[left.next].next;
    if (left.next != count) symbols[left.next].previous = best.at;
    consider(best.at);
    if (left.previous != count) consider(left.previous);
  }
  for (const Symbol& symbol : symbols)
    if (symbol.token >= 0) ids.push_back(symbol.token);
}

}  // namespace sluice
