#include <algorithm>
#include <array>

#include "text/jinja/characters.h"
#include "text/jinja/format.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/split.h"
#include "text/jinja/text_functions.h"

namespace sluice::jinja {

namespace {

std::optional<std::string_view> optional_text(const Bound& arguments, size_t parameter) {
  if (arguments.given(parameter) == nullptr) return std::nullopt;
  return arguments.text(parameter, {});
}

template <std::string (*convert)(std::string_view)>
Value convert_case(Budget& budget, const Value& self, const Bound& /*arguments*/) {
  budget.read(self.as_string().size() * 4);
  return new_text(budget, convert(self.as_string()));
}

template <bool left, bool right>
Value strip_sides(Budget& budget, const Value& self, const Bound& arguments) {
  return new_text(budget, std::string(strip_text(budget, self.as_string(), optional_text(arguments, 0), left, right)));
}

Value list_of(Budget& budget, const std::vector<std::string_view>& parts) {
  budget.allocate_items(parts.size());
  budget.allocate(parts.size() * 96);
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.push_back(new_text(budget, std::string(part)));
  return Value::list(std::move(items));
}

/// The cost of searching from the right, where the needle is compared at every place.
void pay_for_search(Budget& budget, std::string_view text, std::string_view needle) {
  budget.spend((text.size() / 64 + 1) * (needle.size() / 16 + 1));
}

std::optional<std::string_view> separator_of(Budget& budget, const Value& self, const Bound& arguments) {
  const auto separator = optional_text(arguments, 0);
  if (separator && separator->empty()) render_error("empty separator");
  pay_for_search(budget, self.as_string(), separator.value_or(""));
  return separator;
}

Value split(Budget& budget, const Value& self, const Bound& arguments) {
  const auto separator = separator_of(budget, self, arguments);
  return list_of(budget, split_text(self.as_string(), separator, arguments.integer(1, -1)));
}

Value split_from_right(Budget& budget, const Value& self, const Bound& arguments) {
  const auto separator = separator_of(budget, self, arguments);
  return list_of(budget, split_text_from_right(self.as_string(), separator, arguments.integer(1, -1)));
}

Value lines(Budget& budget, const Value& self, const Bound& arguments) {
  budget.read(self.as_string().size());
  return list_of(budget, split_lines(self.as_string(), arguments.truth(0, false)));
}

/// The part of the text between two optional character positions, and where it starts.
struct Window {
  std::string_view text;
  size_t first_character = 0;
  bool valid = true;
};

Window window_of(Budget& budget, const Value& self, const Bound& arguments) {
  const Text& text = self.as_text();
  const auto size = static_cast<int64_t>(text.length);
  const auto position = [&](size_t parameter, int64_t fallback) {
    const int64_t index = arguments.given(parameter) ? arguments.integer(parameter, 0) : fallback;
    return index < 0 ? std::max<int64_t>(0, std::max(index, -size - 1) + size) : index;
  };
  const int64_t start = position(1, 0), stop = std::min(size, position(2, size));
  if (start > size || start > stop) return {{}, 0, false};
  budget.read(text.bytes.size());
  const std::string_view whole = text.bytes;
  const size_t from = offset_of_character(whole, static_cast<size_t>(start));
  const size_t length = offset_of_character(whole.substr(from), static_cast<size_t>(stop - start));
  return {whole.substr(from, length), static_cast<size_t>(start), true};
}

template <bool from_right>
int64_t search(Budget& budget, const Value& self, const Bound& arguments) {
  const Window window = window_of(budget, self, arguments);
  if (!window.valid) return -1;
  const std::string_view needle = arguments.text(0, {});
  pay_for_search(budget, window.text, from_right ? needle : std::string_view());
  const size_t found = from_right ? window.text.rfind(needle) : find_text(window.text, needle, 0);
  if (found == std::string_view::npos) return -1;
  return static_cast<int64_t>(window.first_character + count_characters(window.text.substr(0, found)));
}

template <bool from_right>
Value find(Budget& budget, const Value& self, const Bound& arguments) {
  return Value::integer(search<from_right>(budget, self, arguments));
}

template <bool from_right>
Value index(Budget& budget, const Value& self, const Bound& arguments) {
  const int64_t found = search<from_right>(budget, self, arguments);
  if (found < 0) render_error("substring not found");
  return Value::integer(found);
}

Value count(Budget& budget, const Value& self, const Bound& arguments) {
  const Window window = window_of(budget, self, arguments);
  const std::string_view needle = arguments.text(0, {});
  if (!window.valid) return Value::integer(0);
  if (needle.empty()) return Value::integer(static_cast<int64_t>(count_characters(window.text)) + 1);
  int64_t found = 0;
  for (size_t at = find_text(window.text, needle, 0); at != std::string_view::npos;
       at = find_text(window.text, needle, at + needle.size()))
    ++found;
  return Value::integer(found);
}

template <bool at_end>
Value has_affix(Budget& budget, const Value& self, const Bound& arguments) {
  const Window window = window_of(budget, self, arguments);
  const auto matches = [&](const Value& affix) {
    if (!affix.is_string()) render_error("{} first arg must be str or a tuple of str", arguments.function());
    budget.read(affix.as_string().size());
    return window.valid &&
           (at_end ? window.text.ends_with(affix.as_string()) : window.text.starts_with(affix.as_string()));
  };
  const Value& affix = arguments.value(0);
  if (affix.is_sequence() && affix.as_sequence()->is_tuple()) {
    const auto& options = affix.as_sequence()->items;
    return Value::boolean(std::any_of(options.begin(), options.end(), matches));
  }
  return Value::boolean(matches(affix));
}

template <bool at_end>
Value remove_affix(Budget& budget, const Value& self, const Bound& arguments) {
  std::string_view text = self.as_string();
  const std::string_view affix = arguments.text(0, {});
  if (at_end && !affix.empty() && text.ends_with(affix)) text.remove_suffix(affix.size());
  if (!at_end && text.starts_with(affix)) text.remove_prefix(affix.size());
  return new_text(budget, std::string(text));
}

Value replace(Budget& budget, const Value& self, const Bound& arguments) {
  return new_text(budget, replace_text(budget, self.as_string(), arguments.text(0, {}), arguments.text(1, {}),
                                       arguments.integer(2, -1)));
}

Value join(Budget& budget, const Value& self, const Bound& arguments) {
  const SequencePtr items = iterate(budget, arguments.value(0));
  std::string joined;
  for (size_t i = 0; i < items->items.size(); ++i) {
    const Value& item = items->items[i];
    if (!item.is_string()) render_error("sequence item {}: expected str instance, {} found", i, item.type_name());
    if (i > 0) joined += self.as_string();
    joined += item.as_string();
    budget.spend(1);
    if (joined.size() > max_string_bytes) break;
  }
  return new_text(budget, std::move(joined));
}

template <char align>
Value justify(Budget& budget, const Value& self, const Bound& arguments) {
  FormatSpec spec;
  spec.align = align;
  spec.width = arguments.integer(0, 0);
  std::string_view fill = arguments.text(1, " ");
  if (count_characters(fill) != 1) render_error("The fill character must be exactly one character long");
  size_t position = 0;
  spec.fill = next_character(fill, position);
  if (align == '^') return new_text(budget, center_text(budget, self.as_string(), spec.width, spec.fill));
  return new_text(budget, pad(budget, self.as_string(), spec, align));
}

Value fill_with_zeros(Budget& budget, const Value& self, const Bound& arguments) {
  FormatSpec spec;
  spec.align = '=';
  spec.fill = '0';
  spec.width = arguments.integer(0, 0);
  const bool signed_text = self.as_string().starts_with('+') || self.as_string().starts_with('-');
  if (!signed_text) spec.align = '>';
  return new_text(budget, pad(budget, self.as_string(), spec, '='));
}

template <bool from_right>
Value partition(Budget& budget, const Value& self, const Bound& arguments) {
  const std::string_view text = self.as_string(), separator = arguments.text(0, {});
  if (separator.empty()) render_error("empty separator");
  pay_for_search(budget, text, separator);
  const size_t found = from_right ? text.rfind(separator) : find_text(text, separator, 0);
  std::vector<Value> parts;
  if (found == text.npos) {
    parts = {Value::text({}), Value::text({}), Value::text({})};
    parts[from_right ? 2 : 0] = self;
  } else {
    for (const auto part : {text.substr(0, found), separator, text.substr(found + separator.size())})
      parts.push_back(new_text(budget, std::string(part)));
  }
  return Value::tuple(std::move(parts));
}

template <bool (*belongs)(char32_t)>
Value all_are(Budget& budget, const Value& self, const Bound& /*arguments*/) {
  const std::string& text = self.as_string();
  budget.read(text.size() * 4);
  for (size_t position = 0; position < text.size();)
    if (!belongs(next_character(text, position))) return Value::boolean(false);
  return Value::boolean(!text.empty());
}

bool is_ascii(char32_t character) { return character < 0x80; }

Value all_are_ascii(Budget& /*budget*/, const Value& self, const Bound& /*arguments*/) {
  return Value::boolean(std::all_of(self.as_string().begin(), self.as_string().end(),
                                    [](char byte) { return is_ascii(static_cast<unsigned char>(byte)); }));
}

Value all_are_printable(Budget& budget, const Value& self, const Bound& arguments) {
  return self.as_string().empty() ? Value::boolean(true) : all_are<is_printable>(budget, self, arguments);
}

template <bool wants_upper>
Value has_case(Budget& budget, const Value& self, const Bound& /*arguments*/) {
  budget.read(self.as_string().size() * 4);
  return Value::boolean(is_all_case(self.as_string(), wants_upper));
}

Value is_titled(Budget& budget, const Value& self, const Bound& /*arguments*/) {
  const std::string& text = self.as_string();
  budget.read(text.size() * 4);
  bool inside_word = false, any = false;
  for (size_t position = 0; position < text.size();) {
    const char32_t character = next_character(text, position);
    const bool starts = is_upper(character) || is_title(character), continues = is_lower(character);
    if ((starts && inside_word) || (continues && !inside_word)) return Value::boolean(false);
    inside_word = starts || continues;
    any |= inside_word;
  }
  return Value::boolean(any);
}

Value expand_tabs(Budget& budget, const Value& self, const Bound& arguments) {
  const int64_t size = std::min<int64_t>(arguments.integer(0, 8), 1024);
  const std::string& text = self.as_string();
  budget.allocate_string(text.size() + static_cast<uint64_t>(std::max<int64_t>(size, 0)) *
                                           static_cast<uint64_t>(std::count(text.begin(), text.end(), '\t')));
  std::string expanded;
  int64_t column = 0;
  for (size_t position = 0; position < text.size();) {
    const size_t start = position;
    const char32_t character = next_character(text, position);
    if (character == '\t') {
      const int64_t spaces = size > 0 ? size - column % size : 0;
      expanded.append(static_cast<size_t>(spaces), ' ');
      column += spaces;
      continue;
    }
    expanded.append(text, start, position - start);
    column = character == '\n' || character == '\r' ? 0 : column + 1;
  }
  return Value::text(std::move(expanded));
}

Value format(Budget& budget, const Value& self, const Bound& arguments) {
  return new_text(budget, format_braces(budget, self.as_string(), arguments.all()));
}

Value unsupported(Budget& /*budget*/, const Value& /*self*/, const Bound& arguments) {
  render_error("the string method '{}' is not supported in chat templates", arguments.function());
}

constexpr std::array methods = {
    MethodEntry{"capitalize", convert_case<capitalize>, ""},
    MethodEntry{"casefold", convert_case<fold_case>, ""},
    MethodEntry{"center", justify<'^'>, "width fillchar?"},
    MethodEntry{"count", count, "sub start? end?"},
    MethodEntry{"encode", unsupported, "*"},
    MethodEntry{"endswith", has_affix<true>, "suffix start? end?"},
    MethodEntry{"expandtabs", expand_tabs, "tabsize?"},
    MethodEntry{"find", find<false>, "sub start? end?"},
    MethodEntry{"format", format, "*"},
    MethodEntry{"format_map", unsupported, "*"},
    MethodEntry{"index", index<false>, "sub start? end?"},
    MethodEntry{"isalnum", all_are<is_alphanumeric>, ""},
    MethodEntry{"isalpha", all_are<is_alphabetic>, ""},
    MethodEntry{"isascii", all_are_ascii, ""},
    MethodEntry{"isdecimal", all_are<is_decimal>, ""},
    MethodEntry{"isdigit", all_are<is_digit>, ""},
    MethodEntry{"isidentifier", unsupported, "*"},
    MethodEntry{"islower", has_case<false>, ""},
    MethodEntry{"isnumeric", all_are<is_numeric>, ""},
    MethodEntry{"isprintable", all_are_printable, ""},
    MethodEntry{"isspace", all_are<is_space>, ""},
    MethodEntry{"istitle", is_titled, ""},
    MethodEntry{"isupper", has_case<true>, ""},
    MethodEntry{"join", join, "iterable"},
    MethodEntry{"ljust", justify<'<'>, "width fillchar?"},
    MethodEntry{"lower", convert_case<to_lower>, ""},
    MethodEntry{"lstrip", strip_sides<true, false>, "chars?"},
    MethodEntry{"maketrans", unsupported, "*"},
    MethodEntry{"partition", partition<false>, "sep"},
    MethodEntry{"removeprefix", remove_affix<false>, "prefix"},
    MethodEntry{"removesuffix", remove_affix<true>, "suffix"},
    MethodEntry{"replace", replace, "old new count?"},
    MethodEntry{"rfind", find<true>, "sub start? end?"},
    MethodEntry{"rindex", index<true>, "sub start? end?"},
    MethodEntry{"rjust", justify<'>'>, "width fillchar?"},
    MethodEntry{"rpartition", partition<true>, "sep"},
    MethodEntry{"rsplit", split_from_right, "sep? maxsplit?"},
    MethodEntry{"rstrip", strip_sides<false, true>, "chars?"},
    MethodEntry{"split", split, "sep? maxsplit?"},
    MethodEntry{"splitlines", lines, "keepends?"},
    MethodEntry{"startswith", has_affix<false>, "prefix start? end?"},
    MethodEntry{"strip", strip_sides<true, true>, "chars?"},
    MethodEntry{"swapcase", convert_case<swap_case>, ""},
    MethodEntry{"title", convert_case<to_title>, ""},
    MethodEntry{"translate", unsupported, "*"},
    MethodEntry{"upper", convert_case<to_upper>, ""},
    MethodEntry{"zfill", fill_with_zeros, "width"},
};

}  // namespace

const MethodEntry* find_string_method(std::string_view name) {
  const auto found =
      std::lower_bound(methods.begin(), methods.end(), name,
                       [](const MethodEntry& row, std::string_view wanted) { return row.name < wanted; });
  return found != methods.end() && found->name == name ? &*found : nullptr;
}

}  // namespace sluice::jinja
