#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"

namespace sluice {

/// Ids are below this, whatever a file says.
constexpr std::int64_t token_id_limit = std::int64_t{1} << 24;

/// Texts of tokens both ways. Texts are as tokenizer.json writes them (bytes as printable characters).
class Vocabulary {
 public:
  enum class Added { yes, id_taken, text_taken };

  void reserve(std::size_t tokens);
  /// id in [0, token_id_limit). bytes: what the token stands for.
  Added add(std::string_view text, std::string_view bytes, TokenId id);
  /// Fetches the memory that add() of a text will need, some texts ahead.
  void prefetch(std::string_view text) const;
  std::optional<TokenId> find(std::string_view text) const;
  /// ids[i] becomes the id of texts[i], or -1. Quicker than one by one: the lookups wait for memory together.
  void find_all(std::span<const std::string_view> texts, std::span<TokenId> ids) const;
  bool contains(TokenId id) const { return id >= 0 && id < size() && entries_[id].text_length != absent; }
  /// Empty for an unknown id.
  std::string_view text_of(TokenId id) const;
  std::string_view bytes_of(TokenId id) const;
  /// Largest id + 1.
  int size() const { return static_cast<int>(entries_.size()); }

 private:
  static constexpr std::uint32_t absent = UINT32_MAX;
  struct Entry {
    std::size_t begin = 0;  // in storage_: the text, then the bytes
    std::uint32_t text_length = absent, bytes_length = 0;
  };
  struct Slot {
    std::uint32_t hash = 0;  // its upper half
    TokenId id = -1;         // -1: free
  };
  std::size_t slot_of(std::string_view text, std::size_t hash) const;
  void grow(std::size_t slots);

  std::string storage_;
  std::vector<Entry> entries_;  // by id
  std::vector<Slot> slots_;     // open addressing over texts, a power of two
  std::size_t used_slots_ = 0;
};

/// Which pairs of tokens merge into which, and in what order. Open addressing in one array.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = UINT32_MAX;  // lower merges first; UINT32_MAX: no such merge
    TokenId merged = -1;
  };

  void reserve(std::size_t merges);
  /// Fetches the memory that add() of a pair will need, some pairs ahead.
  void prefetch(TokenId left, TokenId right) const;
  /// False if the pair is there already.
  bool add(TokenId left, TokenId right, Merge merge);
  Merge find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    std::uint64_t pair = free_slot;
    Merge merge;
  };
  static constexpr std::uint64_t free_slot = UINT64_MAX;
  std::size_t home_of(std::uint64_t pair) const;
  std::size_t slot_of(std::uint64_t pair) const;
  void grow(std::size_t slots);

  std::vector<Slot> slots_;
  std::size_t used_slots_ = 0;
};

/// Byte pair encoding of one piece: begins with its bytes and merges the pair of lowest rank, leftmost first,
/// until none is left. n log n in the length of the piece.
class BytePairEncoder {
 public:
  Vocabulary vocabulary;
  MergeTable merges;
  std::array<TokenId, 256> byte_tokens{};  // -1: none
  bool whole_pieces_first = false;         // tokenizer.json's ignore_merges

  /// Appends the ids of a piece. Bytes without a token are left out.
  void encode(std::string_view piece, std::vector<TokenId>& ids) const;

 private:
  void merge_by_scan(std::span<const TokenId> bytes, std::vector<TokenId>& ids) const;
  void merge_by_heap(std::span<const TokenId> bytes, std::vector<TokenId>& ids) const;
};

/// The printable characters that byte-level vocabularies write bytes as.
std::string bytes_to_printable(std::string_view bytes);
/// The bytes that such text stands for; none if a character is not of that alphabet.
std::optional<std::string> printable_to_bytes(std::string_view text);

}  // namespace sluice
