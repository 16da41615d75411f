#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// Columns that UTF-8 text takes on a terminal: wide characters 2, combining ones 0.
int display_width(std::string_view text);

/// Text under edit, with a cursor between two characters. Valid UTF-8, may hold line ends.
class LineBuffer {
 public:
  const std::string& text() const { return text_; }
  std::size_t cursor() const { return cursor_; }  // in bytes
  void set(std::string text);

  /// Broken bytes become U+FFFD.
  void insert(std::string_view text);
  void erase_before();
  void erase_after();
  void left();
  void right();
  void word_left();
  void word_right();
  /// Of the line that the cursor is in.
  void line_start();
  void line_end();
  void kill_to_line_end();
  void kill_to_line_start();
  void kill_word_before();

 private:
  std::size_t previous(std::size_t position) const;
  std::size_t next(std::size_t position) const;
  void erase(std::size_t begin, std::size_t end);

  std::string text_;
  std::size_t cursor_ = 0;
};

/// Earlier inputs, and the unfinished one while somebody looks at them.
class InputHistory {
 public:
  void add(const std::string& input);
  /// The input before or after the one shown; `current` is what stands in the editor now. Stays at the ends.
  std::string older(const std::string& current);
  std::string newer(const std::string& current);

 private:
  std::vector<std::string> inputs_;
  std::vector<std::string> shown_;  // inputs_ and, last, the unfinished one; with edits
  std::size_t position_ = 0;
  void begin(const std::string& current);
};

/// False when more lines belong to the input: its last line ends in a backslash, or a """ block is open.
bool is_complete_input(std::string_view text);
/// The message that was meant: without the quotes of a """ block and the backslashes before line ends.
std::string message_of_input(std::string_view text);

}  // namespace sluice
