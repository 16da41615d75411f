#include "text/jinja/format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "text/jinja/characters.h"
#include "text/jinja/print.h"

namespace sluice::jinja {

namespace {

constexpr int64_t max_precision = 400;

std::string sign_of(bool negative, char sign) {
  if (negative) return "-";
  return sign == '-' ? "" : std::string(1, sign);
}

/// Thousands separators into the digits before any '.' or exponent.
std::string group_digits(const std::string& digits, char separator, size_t size) {
  const size_t whole = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  std::string grouped;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % size == 0) grouped += separator;
    grouped += digits[i];
  }
  return grouped + digits.substr(whole);
}

std::string print_double(double value, int64_t precision, char type, bool alternate) {
  std::array<char, 800> buffer{};
  const std::string pattern = std::string("%") + (alternate ? "#" : "") + ".*" + type;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int size = std::snprintf(buffer.data(), buffer.size(), pattern.c_str(), static_cast<int>(precision), value);
#pragma GCC diagnostic pop
  return {buffer.data(), std::min(static_cast<size_t>(std::max(size, 0)), buffer.size() - 1)};
}

/// A value for "%d": numbers, cut towards zero.
int64_t truncated(const Value& value, char type) {
  if (value.is_integral()) return value.as_integer();
  if (!value.is_floating()) render_error("%{} format: a real number is required, not {}", type, value.type_name());
  const double number = std::trunc(value.as_double());
  if (!(number >= -0x1p63 && number < 0x1p63)) render_error("%{} format: {} is no 64-bit integer", type, number);
  return static_cast<int64_t>(number);
}

class PercentFormatter {
 public:
  PercentFormatter(Budget& budget, std::string_view text, const Value& values)
      : budget_(budget), text_(text), values_(values) {
    if (values.is_sequence() && values.as_sequence()->is_tuple()) {
      items_ = &values.as_sequence()->items;
    }
  }

  std::string run() {
    budget_.read(text_.size());
    while (position_ < text_.size()) {
      const char byte = text_[position_++];
      if (byte == '%') {
        read_field();
      } else {
        out_ += byte;
      }
    }
    // Python asks whether the value has items, and Undefined has a method for them.
    const bool is_container = values_.is_dict() || values_.is_sequence() || values_.is_undefined();
    if (items_ != nullptr ? used_ < items_->size() : used_ == 0 && !is_container)
      render_error("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  char peek() const {
    if (position_ >= text_.size()) render_error("incomplete format");
    return text_[position_];
  }

  const Value& next_value() {
    if (named_ != nullptr) return *named_;
    if (items_ != nullptr && used_ < items_->size()) return (*items_)[used_++];
    if (items_ == nullptr && used_++ == 0) return values_;
    render_error("not enough arguments for format string");
  }

  void read_name() {
    const size_t end = text_.find(')', position_);
    if (end == text_.npos) render_error("incomplete format key");
    if (!values_.is_dict()) render_error("format requires a mapping");
    const auto name = text_.substr(position_, end - position_);
    named_ = values_.as_dict().find(name);
    if (named_ == nullptr) render_error("the format key '{}' is missing", name);
    position_ = end + 1;
  }

  int64_t read_number() {
    if (peek() == '*') {
      ++position_;
      const Value& value = next_value();
      if (!value.is_integer()) render_error("* wants int");
      return value.as_integer();
    }
    int64_t number = 0;
    for (; position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9'; ++position_)
      number = std::min<int64_t>(number * 10 + (text_[position_] - '0'), int64_t{1} << 40);
    return number;
  }

  void read_field() {
    FormatSpec spec;
    named_ = nullptr;
    if (peek() == '(') {
      ++position_;
      read_name();
    }
    bool zeros = false, left = false;
    for (; std::string_view("-+ #0").find(peek()) != std::string_view::npos; ++position_) {
      const char flag = peek();
      if (flag == '-') left = true;
      if (flag == '+' || (flag == ' ' && spec.sign != '+')) spec.sign = flag;
      spec.alternate |= flag == '#';
      zeros |= flag == '0';
    }
    spec.width = read_number();
    if (spec.width < 0) left = true;
    spec.width = std::abs(std::clamp(spec.width, -(int64_t{1} << 40), int64_t{1} << 40));
    if (peek() == '.') {
      ++position_;
      spec.precision = std::max<int64_t>(0, read_number());
    }
    while (peek() == 'l' || peek() == 'h' || peek() == 'L') ++position_;
    spec.type = text_[position_++];
    if (left) {
      spec.align = '<';
    } else if (zeros && std::string_view("diuoxXeEfFgG").find(spec.type) != std::string_view::npos) {
      spec.align = '=';
      spec.fill = '0';
    }
    if (spec.type == '%') {
      out_ += '%';
    } else {
      out_ += pad(budget_, written(spec), spec, '>');
    }
    if (out_.size() > max_string_bytes) render_error("a string grows beyond {} MiB", max_string_bytes >> 20);
  }

  std::string written(FormatSpec& spec) {
    const char type = spec.type;
    if (std::string_view("srcadiuoxXeEfFgG").find(type) == std::string_view::npos)
      render_error("unsupported format character '{}'", type);
    const Value& value = next_value();
    if (value.is_undefined() && type != 's' && type != 'r') throw RenderError(value.undefined_message());
    if (type == 's' || type == 'r' || type == 'a') {
      const std::string text = type == 's' ? to_string(budget_, value) : to_repr(budget_, value);
      if (spec.precision < 0) return text;
      return text.substr(0, offset_of_character(text, static_cast<size_t>(spec.precision)));
    }
    if (type == 'c') {
      if (value.is_string() && value.as_text().length == 1) return value.as_string();
      if (!value.is_integral() || value.as_integer() < 0 || value.as_integer() > 0x10FFFF)
        render_error("%c requires int or char");
      std::string character;
      append_character(character, static_cast<char32_t>(value.as_integer()));
      return character;
    }
    if (std::string_view("eEfFgG").find(type) != std::string_view::npos) {
      if (!value.is_number()) render_error("must be real number, not {}", value.type_name());
      return format_double(value.as_double(), spec);
    }
    if (std::string_view("oxX").find(type) != std::string_view::npos && !value.is_integral())
      render_error("%{} format: an integer is required, not {}", type, value.type_name());
    FormatSpec number = spec;
    if (type == 'i' || type == 'u') number.type = 'd';
    return format_integer(truncated(value, type), number);
  }

  Budget& budget_;
  std::string_view text_;
  const Value& values_;
  const std::vector<Value>* items_ = nullptr;
  const Value* named_ = nullptr;
  size_t used_ = 0;
  size_t position_ = 0;
  std::string out_;
};

}  // namespace

std::string format_percent(Budget& budget, std::string_view text, const Value& values) {
  return PercentFormatter(budget, text, values).run();
}

std::string format_integer(int64_t value, const FormatSpec& spec) {
  const auto magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const int base = spec.type == 'x' || spec.type == 'X' ? 16 : spec.type == 'o' ? 8 : spec.type == 'b' ? 2 : 10;
  std::array<char, 70> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), magnitude, base).ptr;
  std::string digits(buffer.data(), end);
  if (spec.type == 'X') digits = to_upper(digits);
  if (spec.precision > max_precision) render_error("a precision above {} is not supported", max_precision);
  if (static_cast<int64_t>(digits.size()) < spec.precision)
    digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
  if (spec.grouping != '\0') digits = group_digits(digits, spec.grouping, base == 10 ? 3 : 4);
  const std::string prefix = spec.alternate && base != 10 ? std::string("0") + spec.type : std::string();
  return sign_of(value < 0, spec.sign) + prefix + digits;
}

std::string format_double(double value, const FormatSpec& spec) {
  if (spec.precision > max_precision) render_error("a precision above {} is not supported", max_precision);
  const bool percent = spec.type == '%';
  const double magnitude = std::fabs(percent ? value * 100 : value);
  const bool upper = spec.type == 'E' || spec.type == 'F' || spec.type == 'G';
  std::string digits;
  if (std::isnan(value) || std::isinf(value)) {
    digits = std::isnan(value) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf");
  } else if (spec.type == '\0' && spec.precision < 0) {
    digits = float_repr(magnitude);
  } else if (spec.type == '\0') {
    digits = print_double(magnitude, std::max<int64_t>(spec.precision, 1), 'g', false);
    if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  } else {
    digits =
        print_double(magnitude, spec.precision < 0 ? 6 : spec.precision, percent ? 'f' : spec.type, spec.alternate);
  }
  if (spec.grouping != '\0') digits = group_digits(digits, spec.grouping, 3);
  return sign_of(std::signbit(value) && !std::isnan(value), spec.sign) + digits + (percent ? "%" : "");
}

std::string pad(Budget& budget, std::string text, const FormatSpec& spec, char default_align) {
  const size_t length = count_characters(text);
  if (spec.width <= static_cast<int64_t>(length)) return text;
  const size_t missing = static_cast<size_t>(spec.width) - length;
  budget.allocate_string(text.size() + missing * 4);
  const char align = spec.align == '\0' ? default_align : spec.align;
  size_t left = missing;
  if (align == '<') left = 0;
  if (align == '^') left = missing / 2;
  std::string fill, padded;
  append_character(fill, spec.fill);
  size_t head = 0;  // what stays before the padding of '=': sign and base
  if (align == '=') {
    head = !text.empty() && std::string_view("+- ").find(text[0]) != std::string_view::npos ? 1 : 0;
    if (spec.alternate && text.size() > head + 1 && text[head] == '0') head += 2;
  }
  padded += text.substr(0, head);
  for (size_t i = 0; i < left; ++i) padded += fill;
  padded += text.substr(head);
  for (size_t i = left; i < missing; ++i) padded += fill;
  return padded;
}

}  // namespace sluice::jinja
