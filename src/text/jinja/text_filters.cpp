#include <algorithm>
#include <array>

#include "text/jinja/characters.h"
#include "text/jinja/filters.h"
#include "text/jinja/format.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/split.h"
#include "text/jinja/text_functions.h"

namespace sluice::jinja {

namespace {

template <std::string (*convert)(std::string_view)>
Value convert_case(Budget& budget, const Value& operand, const Bound& /*arguments*/) {
  const std::string text = to_string(budget, operand);
  budget.read(text.size() * 4);
  return new_text(budget, convert(text));
}

/// jinja2's own title case: words begin behind white space and "-({[<".
std::string title_words(std::string_view text) {
  std::string made;
  size_t word = 0;
  const auto finish_word = [&](size_t end) {
    const std::string_view whole = text.substr(word, end - word);
    const size_t first = offset_of_character(whole, 1);
    made += to_upper(whole.substr(0, first));
    made += to_lower(whole.substr(first));
  };
  for (size_t position = 0; position < text.size();) {
    const size_t start = position;
    const char32_t character = next_character(text, position);
    if (!is_space(character) &&
        (character >= 0x80 || std::string_view("-({[<").find(static_cast<char>(character)) == std::string_view::npos))
      continue;
    finish_word(start);
    made += text.substr(start, position - start);
    word = position;
  }
  finish_word(text.size());
  return made;
}

Value trim(Budget& budget, const Value& operand, const Bound& arguments) {
  const std::string text = to_string(budget, operand);
  std::optional<std::string_view> set;
  if (arguments.given(0)) set = arguments.text(0, {});
  return new_text(budget, std::string(strip_text(budget, text, set, true, true)));
}

Value center(Budget& budget, const Value& operand, const Bound& arguments) {
  return new_text(budget, center_text(budget, to_string(budget, operand), arguments.integer(0, 80), ' '));
}

Value replace(Budget& budget, const Value& operand, const Bound& arguments) {
  const std::string old = to_string(budget, arguments.value(0)), replacement = to_string(budget, arguments.value(1));
  const int64_t limit = arguments.given(2) ? arguments.integer(2, -1) : -1;
  return new_text(budget, replace_text(budget, to_string(budget, operand), old, replacement, limit));
}

Value join(Budget& budget, const Value& operand, const Bound& arguments) {
  const std::string separator = arguments.get(0) ? to_string(budget, arguments.value(0)) : std::string();
  const SequencePtr items = iterate(budget, operand);
  std::string joined;
  for (size_t i = 0; i < items->items.size(); ++i) {
    if (i > 0) joined += separator;
    const Value* attribute = arguments.given(1);
    joined += to_string(budget, attribute ? follow_attribute(budget, items->items[i], *attribute) : items->items[i]);
    budget.spend(1);
    if (joined.size() > max_string_bytes) break;
  }
  return new_text(budget, std::move(joined));
}

const std::string& need_string(const Value& operand, const Bound& arguments) {
  if (operand.is_undefined()) throw RenderError(operand.undefined_message());
  if (!operand.is_string())
    render_error("the filter '{}' needs a string, not '{}'", arguments.function(), operand.type_name());
  return operand.as_string();
}

Value indent(Budget& budget, const Value& operand, const Bound& arguments) {
  const Value* width = arguments.get(0);
  std::string indention;
  if (width != nullptr && width->is_string()) {
    indention = width->as_string();
  } else {
    const int64_t spaces = std::max<int64_t>(0, arguments.integer(0, 4));
    budget.allocate_string(static_cast<uint64_t>(spaces));
    indention.assign(static_cast<size_t>(spaces), ' ');
  }
  const bool first = arguments.truth(1, false), blank = arguments.truth(2, false);
  const std::string text = need_string(operand, arguments) + "\n";
  std::string made = first ? indention : std::string();
  const auto lines = split_lines(text, false);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) made += '\n';
    if (i > 0 && (blank || !lines[i].empty())) made += indention;
    made += lines[i];
    budget.spend(1);
    if (made.size() > max_string_bytes) break;
  }
  return new_text(budget, std::move(made));
}

Value truncate(Budget& budget, const Value& operand, const Bound& arguments) {
  const std::string_view end = arguments.text(2, "...");
  const auto end_length = static_cast<int64_t>(count_characters(end));
  const int64_t length = arguments.integer(0, 255), leeway = arguments.given(3) ? arguments.integer(3, 5) : 5;
  if (length < end_length) render_error("truncate: expected length >= {}, got {}", end_length, length);
  if (leeway < 0) render_error("truncate: expected leeway >= 0, got {}", leeway);
  if (jinja::length(operand) - leeway <= length) return operand;
  std::string_view cut = need_string(operand, arguments);
  cut = cut.substr(0, offset_of_character(cut, static_cast<size_t>(length - end_length)));
  if (!arguments.truth(1, false)) cut = cut.substr(0, std::min(cut.rfind(' '), cut.size()));
  return new_text(budget, std::string(cut) + std::string(end));
}

Value word_count(Budget& budget, const Value& operand, const Bound& /*arguments*/) {
  const std::string text = to_string(budget, operand);
  budget.read(text.size() * 4);
  int64_t words = 0;
  bool inside = false;
  for (size_t position = 0; position < text.size();) {
    const char32_t character = next_character(text, position);
    const bool belongs = character == '_' || is_alphanumeric(character);
    words += belongs && !inside ? 1 : 0;
    inside = belongs;
  }
  return Value::integer(words);
}

Value as_string(Budget& budget, const Value& operand, const Bound& /*arguments*/) {
  return operand.is_string() ? operand : Value::text(to_string(budget, operand));
}

Value safe(Budget& budget, const Value& operand, const Bound& /*arguments*/) {
  return Value::text(to_string(budget, operand), true);
}

Value escape(Budget& budget, const Value& operand, const Bound& /*arguments*/) {
  return Value::text(escape_html(budget, operand), true);
}

Value force_escape(Budget& budget, const Value& operand, const Bound& /*arguments*/) {
  return Value::text(escape_html(budget, Value::text(to_string(budget, operand))), true);
}

Value format(Budget& budget, const Value& operand, const Bound& arguments) {
  const Arguments& all = arguments.all();
  if (!all.positional.empty() && !all.keyword.empty())
    render_error("can't handle positional and keyword arguments at the same time");
  Dict named;
  for (const auto& [name, value] : all.keyword) named.set(Value::text(name), value);
  const Value values = all.keyword.empty() ? Value::tuple(all.positional) : Value::dict(std::move(named));
  return new_text(budget, format_percent(budget, to_string(budget, operand), values));
}

Value to_json_filter(Budget& budget, const Value& operand, const Bound& arguments) {
  JsonStyle style;
  style.ascii_only = arguments.truth(0, false);
  style.sort_keys = arguments.truth(3, false);
  if (const Value* indent = arguments.given(1)) {
    if (indent->is_string()) {
      style.indent = indent->as_string();
    } else {
      const int64_t spaces = std::clamp<int64_t>(arguments.integer(1, 0), 0, 1000);
      style.indent = std::string(static_cast<size_t>(spaces), ' ');
    }
  }
  if (const Value* separators = arguments.given(2)) {
    const SequencePtr both = iterate(budget, *separators);
    if (both->items.size() != 2 || !both->items[0].is_string() || !both->items[1].is_string())
      render_error("tojson: separators must be two strings");
    style.item_separator = both->items[0].as_string();
    style.key_separator = both->items[1].as_string();
  }
  return Value::text(to_json(budget, operand, style));
}

std::string quote_url(std::string_view text, bool for_query) {
  std::string quoted;
  for (const char byte : text) {
    const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
    if (letter || std::string_view("_.-~").find(byte) != std::string_view::npos || (byte == '/' && !for_query)) {
      quoted += byte;
    } else if (byte == ' ' && for_query) {
      quoted += '+';
    } else {
      quoted += fmt::format("%{:02X}", static_cast<unsigned char>(byte));
    }
  }
  return quoted;
}

Value url_encode(Budget& budget, const Value& operand, const Bound& /*arguments*/) {
  if (operand.is_string() || !(operand.is_dict() || operand.is_sequence()))
    return new_text(budget, quote_url(to_string(budget, operand), false));
  std::string encoded;
  const auto add = [&](const Value& key, const Value& value) {
    if (!encoded.empty()) encoded += '&';
    encoded += quote_url(to_string(budget, key), true) + "=" + quote_url(to_string(budget, value), true);
  };
  if (operand.is_dict()) {
    for (const auto& [key, value] : operand.as_dict().entries()) add(key, value);
  } else {
    for (const Value& pair : operand.as_sequence()->items) {
      const SequencePtr parts = iterate(budget, pair);
      if (parts->items.size() != 2) render_error("urlencode: pairs are needed");
      add(parts->items[0], parts->items[1]);
    }
  }
  return new_text(budget, std::move(encoded));
}

constexpr std::array table = {
    FilterEntry{"capitalize", convert_case<capitalize>, ""},
    FilterEntry{"center", center, "width?"},
    FilterEntry{"e", escape, ""},
    FilterEntry{"escape", escape, ""},
    FilterEntry{"forceescape", force_escape, ""},
    FilterEntry{"format", format, "*"},
    FilterEntry{"indent", indent, "width? first? blank?"},
    FilterEntry{"join", join, "d? attribute?"},
    FilterEntry{"lower", convert_case<to_lower>, ""},
    FilterEntry{"replace", replace, "old new count?"},
    FilterEntry{"safe", safe, ""},
    FilterEntry{"string", as_string, ""},
    FilterEntry{"title", convert_case<title_words>, ""},
    FilterEntry{"tojson", to_json_filter, "ensure_ascii? indent? separators? sort_keys?"},
    FilterEntry{"trim", trim, "chars?"},
    FilterEntry{"truncate", truncate, "length? killwords? end? leeway?"},
    FilterEntry{"upper", convert_case<to_upper>, ""},
    FilterEntry{"urlencode", url_encode, ""},
    FilterEntry{"wordcount", word_count, ""},
};

}  // namespace

std::span<const FilterEntry> text_filters() { return table; }

}  // namespace sluice::jinja
