#include "apps/line_editor.h"

#include <algorithm>
#include <cerrno>
#include <iostream>

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "apps/output.h"
#include "text/unicode.h"

namespace sluice {

namespace {

constexpr std::string_view paste_end = "\x1b[201~";
constexpr std::size_t most_pasted_bytes = std::size_t{16} << 20;

/// Raw input with bracketed paste, while it lives.
class RawTerminal {
 public:
  RawTerminal() {
    active_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    if (!active_) return;
    termios raw = before_;
    raw.c_iflag &= static_cast<tcflag_t>(~(BRKINT | ICRNL | INPCK | ISTRIP | IXON));
    raw.c_lflag &= static_cast<tcflag_t>(~(ECHO | ICANON | IEXTEN | ISIG));
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    write_error("\x1b[?2004h");
  }
  ~RawTerminal() {
    if (!active_) return;
    write_error("\x1b[?2004l");
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  termios before_{};
  bool active_ = false;
};

int terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

struct Place {
  int row = 0, column = 0;
};

/// Where the terminal's cursor stands after this text, written from `place` on. A full row counts as the next one's
/// start.
Place advance(Place place, std::string_view text, int columns) {
  while (!text.empty()) {
    const std::size_t length = decode_character(text).length;
    const int width = display_width(text.substr(0, length));
    if (text.front() == '\n') {
      place = {place.row + 1, 0};
    } else if (place.column + width > columns) {
      place = {place.row + 1, width};
    } else {
      place.column += width;
    }
    text.remove_prefix(length);
  }
  if (place.column >= columns) place = {place.row + 1, 0};
  return place;
}

/// Control characters but line ends are not drawn as they are.
std::string drawable(std::string_view text) {
  std::string drawn;
  for (const char c : text) {
    if (c == '\n') {
      drawn += "\r\n";
    } else if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) {
      drawn += c;
    }
  }
  return drawn;
}

}  // namespace

std::optional<unsigned char> LineEditor::read_byte() {
  unsigned char byte = 0;
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got == 1) return byte;
    if (got < 0 && errno == EINTR) continue;
    return std::nullopt;
  }
}

/// Tells a lone Escape from the beginning of a sequence.
bool LineEditor::input_waits() const {
  pollfd waiting{STDIN_FILENO, POLLIN, 0};
  constexpr int milliseconds = 30;
  return poll(&waiting, 1, milliseconds) == 1;
}

void LineEditor::read_paste(std::string& typed) {
  while (typed.size() < most_pasted_bytes) {
    const auto byte = read_byte();
    if (!byte) return;
    typed += *byte == '\r' ? '\n' : static_cast<char>(*byte);
    const std::size_t end = typed.size() - std::min(typed.size(), paste_end.size());
    if (typed.compare(end, std::string::npos, paste_end) == 0) {
      typed.erase(end);
      return;
    }
  }
}

LineEditor::Key LineEditor::read_escape(std::string& typed) {
  if (!input_waits()) return Key::nothing;
  const auto kind = read_byte();
  if (kind == 'b') return Key::word_left;
  if (kind == 'f') return Key::word_right;
  if (kind == '\r') {
    typed = "\n";
    return Key::text;
  }
  if (kind != '[' && kind != 'O') return Key::nothing;
  std::string parameters;
  std::optional<unsigned char> last;
  while ((last = read_byte()) && (*last < 0x40 || *last > 0x7e) && parameters.size() < 16) {
    parameters += static_cast<char>(*last);
  }
  const bool with_control = parameters == "1;5" || parameters == "1;3";
  switch (last.value_or(0)) {
    case 'A': return Key::up;
    case 'B': return Key::down;
    case 'C': return with_control ? Key::word_right : Key::right;
    case 'D': return with_control ? Key::word_left : Key::left;
    case 'H': return Key::home;
    case 'F': return Key::end;
    default: break;
  }
  if (last != '~') return Key::nothing;
  if (parameters == "1" || parameters == "7") return Key::home;
  if (parameters == "4" || parameters == "8") return Key::end;
  if (parameters == "3") return Key::erase;
  if (parameters != "200") return Key::nothing;
  read_paste(typed);
  return Key::text;
}

LineEditor::Key LineEditor::read_key(std::string& typed) {
  constexpr auto control = [](char letter) { return static_cast<unsigned char>(letter - 'A' + 1); };
  const auto byte = read_byte();
  if (!byte) return Key::end_of_file;
  switch (*byte) {
    case control('A'): return Key::home;
    case control('B'): return Key::left;
    case control('C'): return Key::interrupt;
    case control('D'): return buffer_.text().empty() ? Key::end_of_file : Key::erase;
    case control('E'): return Key::end;
    case control('F'): return Key::right;
    case control('H'): return Key::backspace;
    case control('J'):
    case control('M'): return Key::enter;
    case control('K'): return Key::kill_end;
    case control('L'): return Key::clear_screen;
    case control('N'): return Key::down;
    case control('P'): return Key::up;
    case control('U'): return Key::kill_start;
    case control('W'): return Key::kill_word;
    case 0x1b: return read_escape(typed);
    case 0x7f: return Key::backspace;
    default: break;
  }
  if (*byte < 0x20 && *byte != '\t') return Key::nothing;
  typed += static_cast<char>(*byte == '\t' ? ' ' : *byte);
  while (decode_character(typed).unfinished) {
    const auto more = read_byte();
    if (!more) break;
    typed += static_cast<char>(*more);
  }
  return Key::text;
}

void LineEditor::apply(Key key, const std::string& typed) {
  switch (key) {
    case Key::text: buffer_.insert(typed); break;
    case Key::backspace: buffer_.erase_before(); break;
    case Key::erase: buffer_.erase_after(); break;
    case Key::left: buffer_.left(); break;
    case Key::right: buffer_.right(); break;
    case Key::word_left: buffer_.word_left(); break;
    case Key::word_right: buffer_.word_right(); break;
    case Key::home: buffer_.line_start(); break;
    case Key::end: buffer_.line_end(); break;
    case Key::kill_end: buffer_.kill_to_line_end(); break;
    case Key::kill_start: buffer_.kill_to_line_start(); break;
    case Key::kill_word: buffer_.kill_word_before(); break;
    case Key::up: buffer_.set(history_.older(buffer_.text())); break;
    case Key::down: buffer_.set(history_.newer(buffer_.text())); break;
    case Key::clear_screen:
      write_error("\x1b[H\x1b[2J");
      drawn_row_ = 0;
      break;
    default: break;
  }
}

void LineEditor::draw(const std::string& prompt) {
  const int columns = terminal_columns();
  const Place start{0, display_width(prompt)};
  const std::string& text = buffer_.text();
  const Place end = advance(start, text, columns);
  const Place cursor = advance(start, std::string_view(text).substr(0, buffer_.cursor()), columns);
  std::string out = drawn_row_ > 0 ? fmt::format("\x1b[{}A", drawn_row_) : "";
  out += "\r\x1b[J" + prompt + drawable(text);
  // A terminal waits with the wrap of a full row until the next character.
  if (end.column == 0 && end.row > 0 && !text.empty() && text.back() != '\n') out += "\r\n";
  if (end.row > cursor.row) out += fmt::format("\x1b[{}A", end.row - cursor.row);
  out += "\r";
  if (cursor.column > 0) out += fmt::format("\x1b[{}C", cursor.column);
  drawn_row_ = cursor.row;
  write_error(out);
}

/// Puts the terminal's cursor below the input.
void LineEditor::leave_drawing(const std::string& prompt) {
  buffer_.set(buffer_.text());
  draw(prompt);
  write_error("\r\n");
}

TerminalInput LineEditor::read_plain(const std::string& prompt) {
  TerminalInput input;
  write_error(prompt);
  for (std::string line; std::getline(std::cin, line);) {
    input.text += line;
    if (is_complete_input(input.text)) return input;
    input.text += '\n';
  }
  input.end = input.text.empty() ? InputEnd::end_of_file : InputEnd::entered;
  return input;
}

TerminalInput LineEditor::read(const std::string& prompt) {
  if (plain_) return read_plain(prompt);
  const RawTerminal raw;
  buffer_.set("");
  drawn_row_ = 0;
  while (true) {
    draw(prompt);
    std::string typed;
    const Key key = read_key(typed);
    if (key == Key::enter && !is_complete_input(buffer_.text())) {
      buffer_.set(buffer_.text());
      buffer_.insert("\n");
      continue;
    }
    if (key != Key::enter && key != Key::interrupt && key != Key::end_of_file) {
      apply(key, typed);
      continue;
    }
    leave_drawing(prompt);
    if (key == Key::interrupt) return {InputEnd::interrupted, buffer_.text()};
    if (key == Key::end_of_file && buffer_.text().empty()) return {InputEnd::end_of_file, ""};
    history_.add(buffer_.text());
    return {InputEnd::entered, buffer_.text()};
  }
}

}  // namespace sluice
