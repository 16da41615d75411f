#include "text/jinja/print.h"

#include <algorithm>
#include <cmath>

#include "text/jinja/characters.h"

namespace sluice::jinja {

namespace {

void check_size(const std::string& out) {
  if (out.size() > max_string_bytes) render_error("a string grows beyond {} MiB", max_string_bytes >> 20);
}

void append_repr(std::string& out, const Value& value);

void append_items(std::string& out, const std::vector<Value>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(out, items[i]);
  }
}

void append_range(std::string& out, const Sequence& range) {
  out += fmt::format("range({}, {}", range.start, range.stop);
  if (range.step != 1) out += fmt::format(", {}", range.step);
  out += ')';
}

void append_sequence(std::string& out, const Sequence& sequence) {
  switch (sequence.type) {
    case Sequence::Type::range: return append_range(out, sequence);
    case Sequence::Type::tuple:
    case Sequence::Type::group:
      out += '(';
      append_items(out, sequence.items);
      out += sequence.items.size() == 1 ? ",)" : ")";
      return;
    case Sequence::Type::list:
      out += '[';
      append_items(out, sequence.items);
      out += ']';
      return;
    default:
      out += Value::sequence(Sequence{sequence.type, {}}).type_name() + "([";
      append_items(out, sequence.items);
      out += "])";
  }
}

void append_dict(std::string& out, const Dict& dict) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) out += ", ";
    first = false;
    append_repr(out, key);
    out += ": ";
    append_repr(out, value);
  }
  out += '}';
}

/// None, a boolean or a number.
std::string scalar(const Value& value) {
  if (value.is_none()) return "None";
  if (value.is_boolean()) return value.as_boolean() ? "True" : "False";
  if (value.is_integer()) return std::to_string(value.as_integer());
  return float_repr(value.as_double());
}

void append_repr(std::string& out, const Value& value) {
  check_size(out);
  if (value.is_undefined()) {
    out += "Undefined";
  } else if (value.is_string()) {
    append_quoted(out, value.as_string());
  } else if (value.is_sequence()) {
    append_sequence(out, *value.as_sequence());
  } else if (value.is_dict()) {
    append_dict(out, value.as_dict());
  } else if (value.is_generator()) {
    out += "<generator object>";
  } else if (value.is_object()) {
    out += value.as_object()->repr();
  } else {
    out += scalar(value);
  }
}

void append_escaped_unit(std::string& out, uint32_t unit) { out += fmt::format("\\u{:04x}", unit); }

void append_json_character(std::string& out, char32_t character, std::string_view bytes, bool ascii_only) {
  switch (character) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    default: break;
  }
  if (character < 0x20 || (ascii_only && character >= 0x7F && character < 0x10000)) {
    append_escaped_unit(out, character);
  } else if (ascii_only && character >= 0x10000) {
    append_escaped_unit(out, 0xD800 + ((character - 0x10000) >> 10));
    append_escaped_unit(out, 0xDC00 + ((character - 0x10000) & 0x3FF));
  } else {
    out += bytes;
  }
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style)
      : style_(style),
        item_separator_(style.item_separator.value_or(style.indent ? "," : ", ")),
        key_separator_(style.key_separator.value_or(": ")) {}

  void write(const Value& value) {
    check_size(out_);
    if (value.is_string()) {
      write_string(value.as_string());
    } else if (value.is_dict()) {
      write_dict(value.as_dict());
    } else if (value.is_sequence() &&
               (value.as_sequence()->type == Sequence::Type::list || value.as_sequence()->is_tuple())) {
      write_list(value.as_sequence()->items);
    } else if (value.is_none() || value.is_number()) {
      out_ += scalar_json(value);
    } else {
      render_error("Object of type {} is not JSON serializable", value.type_name());
    }
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string scalar_json(const Value& value) {
    if (value.is_none()) return "null";
    if (value.is_boolean()) return value.as_boolean() ? "true" : "false";
    if (value.is_floating() && std::isnan(value.as_double())) return "NaN";
    if (value.is_floating() && std::isinf(value.as_double())) return value.as_double() < 0 ? "-Infinity" : "Infinity";
    return scalar(value);
  }

  void write_string(std::string_view text) {
    out_ += '"';
    for (size_t position = 0; position < text.size();) {
      const size_t start = position;
      const char32_t character = next_character(text, position);
      append_json_character(out_, character, text.substr(start, position - start), style_.ascii_only);
    }
    out_ += '"';
  }

  void new_line() {
    if (!style_.indent) return;
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += *style_.indent;
    check_size(out_);
  }

  void write_list(const std::vector<Value>& items) {
    if (items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += item_separator_;
      new_line();
      write(items[i]);
    }
    --level_;
    new_line();
    out_ += ']';
  }

  void write_key(const Value& key) {
    if (key.is_string()) return write_string(key.as_string());
    if (!key.is_none() && !key.is_number())
      render_error("keys must be str, int, float, bool or None, not {}", key.type_name());
    write_string(scalar_json(key));
  }

  void write_dict(const Dict& dict) {
    if (dict.entries().empty()) {
      out_ += "{}";
      return;
    }
    out_ += '{';
    ++level_;
    bool first = true;
    for (const Dict::Entry* entry : ordered(dict)) {
      if (!first) out_ += item_separator_;
      first = false;
      new_line();
      write_key(entry->first);
      out_ += key_separator_;
      write(entry->second);
    }
    --level_;
    new_line();
    out_ += '}';
  }

  std::vector<const Dict::Entry*> ordered(const Dict& dict) const {
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries()) {
      if (style_.sort_keys && !entry.first.is_string()) render_error("sort_keys needs keys that are strings");
      entries.push_back(&entry);
    }
    if (style_.sort_keys)
      std::sort(entries.begin(), entries.end(), [](const Dict::Entry* left, const Dict::Entry* right) {
        return left->first.as_string() < right->first.as_string();
      });
    return entries;
  }

  const JsonStyle& style_;
  std::string item_separator_, key_separator_, out_;
  int level_ = 0;
};

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void append_quoted(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != text.npos, has_double = text.find('"') != text.npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out += quote;
  for (size_t position = 0; position < text.size();) {
    const size_t start = position;
    const char32_t character = next_character(text, position);
    if (character == static_cast<char32_t>(quote) || character == '\\') {
      out += '\\';
      out += static_cast<char>(character);
    } else if (character == '\n') {
      out += "\\n";
    } else if (character == '\r') {
      out += "\\r";
    } else if (character == '\t') {
      out += "\\t";
    } else if (is_printable(character)) {
      out += text.substr(start, position - start);
    } else if (character < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(character));
    } else if (character < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(character));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<uint32_t>(character));
    }
  }
  out += quote;
}

std::string to_repr(Budget& budget, const Value& value) {
  budget.spend(value.weight());
  std::string out;
  append_repr(out, value);
  budget.allocate_string(out.size());
  return out;
}

std::string to_string(Budget& budget, const Value& value) {
  if (value.is_undefined()) return {};
  if (!value.is_string()) return to_repr(budget, value);
  budget.allocate_string(value.as_string().size());
  return value.as_string();
}

std::string to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  budget.spend(value.weight());
  JsonWriter writer(style);
  writer.write(value);
  std::string out = writer.take();
  budget.allocate_string(out.size());
  return out;
}

}  // namespace sluice::jinja
