#include "weights/name_pattern.h"

#include <memory>
#include <string>
#include <utility>

namespace sluice {

namespace {

using Set = NamePattern::Set;
using Kind = NamePattern::Kind;
using Program = std::vector<NamePattern::Instruction>;

constexpr int max_depth = 16;

std::size_t index_of(char c) { return static_cast<unsigned char>(c); }

Set one_character(char c) { return Set().set(index_of(c)); }

Set range(char first, char last) {
  Set set;
  for (std::size_t c = index_of(first); c <= index_of(last); ++c) set.set(c);
  return set;
}

Set digits() { return range('0', '9'); }
Set word_characters() { return digits() | range('a', 'z') | range('A', 'Z') | one_character('_'); }

/// Reads an expression and appends its program; failed() once something is not understood.
class Compiler {
 public:
  explicit Compiler(std::string_view text) : text_(text) {}

  std::optional<Program> compile() {
    Program program = alternatives(0);
    if (failed_ || at_ != text_.size()) return std::nullopt;
    program.push_back({});
    return program;
  }

 private:
  bool more() const { return !failed_ && at_ < text_.size(); }
  bool take(char c) {
    if (!more() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Program fail() {
    failed_ = true;
    return {};
  }
  /// `part` behind `program`; jumps of a part count from its first instruction.
  static void append(Program& program, const Program& part) {
    const std::size_t base = program.size();
    for (NamePattern::Instruction instruction : part) {
      instruction.next += base;
      instruction.other += base;
      program.push_back(instruction);
    }
  }
  static Program single(Kind kind, const Set& set = {}) { return {{kind, set, 1, 0}}; }
  static Program split(std::size_t next, std::size_t other) { return {{Kind::split, {}, next, other}}; }

  Program alternatives(int depth) {
    if (depth > max_depth) return fail();
    Program program = sequence(depth);
    while (take('|')) {
      const Program first = std::exchange(program, {}), second = sequence(depth);
      append(program, split(1, first.size() + 2));
      append(program, first);
      append(program, split(second.size() + 1, second.size() + 1));
      append(program, second);
    }
    return program;
  }

  Program sequence(int depth) {
    Program program;
    while (more() && text_[at_] != '|' && text_[at_] != ')') append(program, repeated(atom(depth)));
    return program;
  }

  Program repeated(const Program& part) {
    Program program;
    const std::size_t size = part.size();
    if (take('*')) {
      append(program, split(1, size + 2));
      append(program, part);
      program.push_back({Kind::split, {}, 0, 0});
    } else if (take('+')) {
      append(program, part);
      program.push_back({Kind::split, {}, 0, size + 1});
    } else if (take('?')) {
      append(program, split(1, size + 1));
      append(program, part);
    } else {
      return part;
    }
    take('?');  // as few as possible: the same names
    if (more() && (text_[at_] == '*' || text_[at_] == '+' || text_[at_] == '?')) return fail();
    return program;
  }

  Program atom(int depth) {
    const char c = text_[at_++];
    switch (c) {
      case '.': return single(Kind::characters, Set().set());
      case '^': return single(Kind::begin);
      case '$': return single(Kind::end);
      case '\\': return escaped();
      case '[': return character_class();
      case '(': {
        if (take('?') && !take(':')) return fail();
        Program program = alternatives(depth + 1);
        return take(')') ? program : fail();
      }
      case '*':
      case '+':
      case '?':
      case '{':
      case '}':
      case ']': return fail();
      default: return single(Kind::characters, one_character(c));
    }
  }

  Program escaped() {
    if (!more()) return fail();
    const char c = text_[at_++];
    if (c == 'd') return single(Kind::characters, digits());
    if (c == 'w') return single(Kind::characters, word_characters());
    if (word_characters().test(index_of(c))) return fail();
    return single(Kind::characters, one_character(c));
  }

  Program character_class() {
    const bool others = take('^');
    Set set;
    while (more() && text_[at_] != ']') {
      const char first = text_[at_++];
      if (first == '\\') {
        const Program program = escaped();
        if (!failed_) set |= program.front().set;
        continue;
      }
      char last = first;
      if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        last = text_[at_ + 1];
        at_ += 2;
      }
      if (last == '\\' || index_of(last) < index_of(first)) return fail();
      set |= range(first, last);
    }
    if (!take(']') || set.none()) return fail();
    return single(Kind::characters, others ? ~set : set);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

/// The instructions that are waiting for a character, at one place of a name.
class Waiting {
 public:
  explicit Waiting(const Program& program) : program_(program), seen_(program.size()) {}

  /// Follows splits and places; true if the pattern ends here.
  bool add(std::size_t start, bool at_begin, bool at_end) {
    bool matched = false;
    stack_.push_back(start);
    while (!stack_.empty()) {
      const std::size_t at = stack_.back();
      stack_.pop_back();
      if (seen_[at]) continue;
      seen_[at] = true;
      const NamePattern::Instruction& instruction = program_[at];
      switch (instruction.kind) {
        case Kind::characters: waiting_.push_back(at); break;
        case Kind::match: matched = true; break;
        case Kind::split: stack_.insert(stack_.end(), {instruction.other, instruction.next}); break;
        case Kind::begin:
          if (at_begin) stack_.push_back(instruction.next);
          break;
        case Kind::end:
          if (at_end) stack_.push_back(instruction.next);
          break;
      }
    }
    return matched;
  }
  std::vector<std::size_t> take() {
    seen_.assign(seen_.size(), false);
    return std::exchange(waiting_, {});
  }

 private:
  const Program& program_;
  std::vector<bool> seen_;
  std::vector<std::size_t> waiting_, stack_;
};

}  // namespace

std::optional<NamePattern> NamePattern::regex(std::string_view text) {
  if (text.size() > max_length) return std::nullopt;
  auto program = Compiler(text).compile();
  if (!program) return std::nullopt;
  return NamePattern(*std::move(program));
}

std::optional<NamePattern> NamePattern::wildcard(std::string_view text) {
  std::string expression;
  for (const char c : text) {
    if (c == '*') {
      expression += ".*";
    } else if (c == '?') {
      expression += '.';
    } else if (word_characters().test(index_of(c))) {
      expression += c;
    } else {
      expression += {'\\', c};
    }
  }
  return regex(expression + "$");
}

bool NamePattern::matches(std::string_view name) const {
  Waiting waiting(program_);
  if (waiting.add(0, true, name.empty())) return true;
  for (std::size_t i = 0; i < name.size(); ++i) {
    bool matched = false;
    for (const std::size_t at : waiting.take()) {
      if (!program_[at].set.test(index_of(name[i]))) continue;
      matched |= waiting.add(program_[at].next, false, i + 1 == name.size());
    }
    if (matched) return true;
  }
  return false;
}

}  // namespace sluice
