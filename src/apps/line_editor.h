#pragma once
#include <optional>
#include <string>

#include "apps/line_buffer.h"

namespace sluice {

/// How reading an input ended.
enum class InputEnd : std::uint8_t { entered, interrupted, end_of_file };

struct TerminalInput {
  InputEnd end = InputEnd::entered;
  std::string text;
};

/// Reads inputs from the terminal at standard input, drawing on standard error: cursor keys, history, the usual Ctrl
/// keys, inputs of several lines (is_complete_input, bracketed paste). The terminal is raw only while it reads.
class LineEditor {
 public:
  /// A plain editor draws nothing but the prompt and leaves editing to the terminal driver.
  explicit LineEditor(bool plain) : plain_(plain) {}
  TerminalInput read(const std::string& prompt);

 private:
  enum class Key : std::uint8_t {
    text,
    enter,
    interrupt,
    end_of_file,
    backspace,
    erase,
    left,
    right,
    up,
    down,
    word_left,
    word_right,
    home,
    end,
    kill_end,
    kill_start,
    kill_word,
    clear_screen,
    nothing
  };
  TerminalInput read_plain(const std::string& prompt);
  std::optional<unsigned char> read_byte();
  bool input_waits() const;
  Key read_key(std::string& typed);
  Key read_escape(std::string& typed);
  void read_paste(std::string& typed);
  void apply(Key key, const std::string& typed);
  void draw(const std::string& prompt);
  void leave_drawing(const std::string& prompt);

  bool plain_;
  LineBuffer buffer_;
  InputHistory history_;
  int drawn_row_ = 0;  // of the cursor, below the prompt's row
};

}  // namespace sluice
