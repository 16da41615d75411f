#pragma once
#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace sluice {

/// A pattern for names that a file brings along. Matching takes time in proportion to name times pattern, whatever they
/// are.
class NamePattern {
 public:
  static constexpr std::size_t max_length = 256;

  /// A regular expression that a name must begin with, as Python's re.match has it: characters, `.`, \d, \w, escaped
  /// punctuation, [classes], groups, alternatives, `*`, `+`, `?`, `^` and `$`. None for anything else.
  static std::optional<NamePattern> regex(std::string_view text);
  /// The whole name, `*` for any characters and `?` for one. None if it is too long.
  static std::optional<NamePattern> wildcard(std::string_view text);

  bool matches(std::string_view name) const;
  /// Steps for each character of a name at most.
  std::size_t size() const { return program_.size(); }

  using Set = std::bitset<256>;
  enum class Kind : std::uint8_t { characters, split, begin, end, match };
  struct Instruction {
    Kind kind = Kind::match;
    Set set;                          // of Kind::characters
    std::size_t next = 0, other = 0;  // other: of Kind::split
  };

 private:
  explicit NamePattern(std::vector<Instruction> program) : program_(std::move(program)) {}

  std::vector<Instruction> program_;
};

}  // namespace sluice
