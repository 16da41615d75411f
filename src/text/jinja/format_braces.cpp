#include <algorithm>
#include <charconv>
#include <optional>

#include "text/jinja/characters.h"
#include "text/jinja/format.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace sluice::jinja {

namespace {

constexpr std::string_view alignments = "<>^=";

int64_t read_digits(std::string_view& text) {
  int64_t number = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    number = std::min<int64_t>(number * 10 + (text[0] - '0'), int64_t{1} << 40);
    text.remove_prefix(1);
  }
  return number;
}

bool skip(std::string_view& text, char expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(1);
  return true;
}

FormatSpec parse_spec(std::string_view text) {
  FormatSpec spec;
  if (!text.empty()) {
    size_t fill_size = 0;
    const char32_t fill = next_character(text, fill_size);
    if (fill_size < text.size() && alignments.find(text[fill_size]) != alignments.npos) {
      spec.fill = fill;
      spec.align = text[fill_size];
      text.remove_prefix(fill_size + 1);
    } else if (alignments.find(text[0]) != alignments.npos) {
      spec.align = text[0];
      text.remove_prefix(1);
    }
  }
  for (const char sign : {'+', '-', ' '})
    if (skip(text, sign)) spec.sign = sign;
  spec.alternate = skip(text, '#');
  if (text.starts_with('0') && spec.align == '\0') {
    spec.fill = '0';
    spec.align = '=';
  }
  spec.width = read_digits(text);
  for (const char grouping : {',', '_'})
    if (skip(text, grouping)) spec.grouping = grouping;
  if (skip(text, '.')) {
    if (text.empty() || text[0] < '0' || text[0] > '9') render_error("Format specifier missing precision");
    spec.precision = read_digits(text);
  }
  if (!text.empty()) {
    spec.type = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty()) render_error("Invalid format specifier");
  return spec;
}

std::string format_one(Budget& budget, const Value& value, std::string_view text) {
  if (text.empty()) return to_string(budget, value);
  FormatSpec spec = parse_spec(text);
  const auto type_is = [&](std::string_view types) { return types.find(spec.type) != types.npos; };
  if (value.is_string() && (spec.type == '\0' || spec.type == 's')) {
    if (spec.align == '=' && spec.fill == '0') spec.align = '<';
    std::string cut = value.as_string();
    if (spec.precision >= 0) cut.resize(offset_of_character(cut, static_cast<size_t>(spec.precision)));
    return pad(budget, std::move(cut), spec, '<');
  }
  if (value.is_integral() && (spec.type == '\0' || type_is("dboxXn"))) {
    if (spec.precision >= 0) render_error("Precision not allowed in integer format specifier");
    return pad(budget, format_integer(value.as_integer(), spec), spec, '>');
  }
  if (value.is_number() && (spec.type == '\0' || type_is("eEfFgG%")))
    return pad(budget, format_double(value.as_double(), spec), spec, '>');
  render_error("unsupported format '{}' for a value of type '{}'", text, value.type_name());
}

class BraceFormatter {
 public:
  BraceFormatter(Budget& budget, std::string_view text, const Arguments& arguments)
      : budget_(budget), text_(text), arguments_(arguments) {}

  std::string run() {
    budget_.read(text_.size());
    std::string out;
    while (position_ < text_.size()) {
      const char byte = text_[position_++];
      const bool doubled = position_ < text_.size() && text_[position_] == byte;
      if (byte != '{' && byte != '}') {
        out += byte;
      } else if (doubled) {
        out += byte;
        ++position_;
      } else if (byte == '}') {
        render_error("Single '}}' encountered in format string");
      } else {
        out += read_field();
        if (out.size() > max_string_bytes) render_error("a string grows beyond {} MiB", max_string_bytes >> 20);
      }
    }
    return out;
  }

 private:
  std::string read_field() {
    const size_t end = text_.find('}', position_);
    if (end == text_.npos) render_error("expected '}}' before end of string");
    std::string_view field = text_.substr(position_, end - position_);
    if (field.find('{') != field.npos) render_error("nested fields in format strings are not supported");
    position_ = end + 1;
    const size_t colon = std::min(field.find(':'), field.size());
    std::string_view name = field.substr(0, colon);
    const std::string_view spec = field.substr(std::min(field.size(), colon + 1));
    const size_t mark = name.find('!');
    const std::string_view conversion = mark == name.npos ? std::string_view() : name.substr(mark);
    Value value = look_up(name.substr(0, mark));
    if (conversion == "!r") {
      value = Value::text(to_repr(budget_, value));
    } else if (conversion == "!s") {
      value = Value::text(to_string(budget_, value));
    } else if (!conversion.empty()) {
      render_error("Unknown conversion specifier '{}'", conversion);
    }
    return format_one(budget_, value, spec);
  }

  static std::optional<int64_t> as_index(std::string_view text) {
    if (text.empty() || text.find_first_not_of("0123456789") != text.npos) return std::nullopt;
    return read_digits(text);
  }

  Value look_up(std::string_view path) {
    const size_t end = std::min(path.find_first_of(".["), path.size());
    const std::string_view first = path.substr(0, end);
    path.remove_prefix(end);
    Value value = look_up_first(first);
    while (!path.empty()) {
      const bool is_attribute = path[0] == '.';
      path.remove_prefix(1);
      const size_t stop = is_attribute ? std::min(path.find_first_of(".["), path.size()) : path.find(']');
      if (stop == path.npos) render_error("Missing ']' in format string");
      const std::string key(path.substr(0, stop));
      const auto index = as_index(key);
      value = is_attribute ? get_attribute(budget_, value, key)
                           : get_item(budget_, value, index ? Value::integer(*index) : Value::text(key));
      path.remove_prefix(is_attribute ? stop : stop + 1);
    }
    return value;
  }

  Value look_up_first(std::string_view name) {
    const auto index = name.empty() ? std::optional(next_++) : as_index(name);
    if (index) {
      if (*index >= static_cast<int64_t>(arguments_.positional.size()))
        render_error("Replacement index {} out of range for positional args tuple", *index);
      return arguments_.positional[static_cast<size_t>(*index)];
    }
    for (const auto& [key, value] : arguments_.keyword)
      if (key == name) return value;
    render_error("the format field '{}' is missing", name);
  }

  Budget& budget_;
  std::string_view text_;
  const Arguments& arguments_;
  size_t position_ = 0;
  int64_t next_ = 0;
};

}  // namespace

std::string format_braces(Budget& budget, std::string_view text, const Arguments& arguments) {
  return BraceFormatter(budget, text, arguments).run();
}

}  // namespace sluice::jinja
