#include "text/tool_calls.h"

#include <algorithm>
#include <initializer_list>

namespace sluice {

namespace {

constexpr std::string_view open_call_tag = "<tool_call>", close_call_tag = "</tool_call>";
constexpr std::string_view open_function_tag = "<function=", close_function_tag = "</function>";
constexpr std::string_view open_parameter_tag = "<parameter=", close_parameter_tag = "</parameter>";
constexpr std::string_view white_space = " \t\r\n";

/// White space between tags, and names in them, are shorter than this; bounds what has to be held back.
constexpr std::size_t space_limit = 256, name_limit = 256;

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(white_space);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(white_space) + 1 - begin);
}

/// Whether one of the tags comes after white space. The end of the reply counts as one.
Found find_after_space(std::string_view text, std::initializer_list<std::string_view> tags, bool ends) {
  const std::size_t begin = std::min(text.find_first_not_of(white_space), text.size());
  if (begin > space_limit) return Found::no;
  text.remove_prefix(begin);
  Found found = Found::no;
  for (std::string_view tag : tags) {
    const Found one = find_tag(text, tag);
    if (one == Found::yes || (one == Found::unknown_yet && ends)) return Found::yes;
    if (one == Found::unknown_yet) found = one;
  }
  return found;
}

/// Looks at `next` if there is a first tag.
template <class Next>
Found both(Found first, Next next) {
  return first == Found::yes ? next() : first;
}

}  // namespace

Found find_tag(std::string_view text, std::string_view tag) {
  if (text.starts_with(tag)) return Found::yes;
  return tag.starts_with(text) ? Found::unknown_yet : Found::no;
}

/// A tag with a name, <function=NAME> or <parameter=KEY>.
ToolCallReader::Header ToolCallReader::read_header(std::string_view text, std::string_view tag) {
  const Found found = find_tag(text, tag);
  if (found != Found::yes) return {found, 0, {}};
  const std::string_view rest = text.substr(tag.size());
  const std::size_t end = rest.find_first_of("<>\n");
  if (end == std::string_view::npos && rest.size() <= name_limit) return {Found::unknown_yet, 0, {}};
  if (end > name_limit || rest[end] != '>') return {};
  const std::string_view name = trim(rest.substr(0, end));
  if (name.empty()) return {};
  return {Found::yes, tag.size() + end + 1, std::string(name)};
}

/// <tool_call><function=NAME> with white space between them, or <function=NAME> with a declared name.
ToolCallReader::Header ToolCallReader::read_opening(std::string_view text) const {
  const Found wrapper = find_tag(text, open_call_tag);
  if (wrapper == Found::yes) {
    const std::string_view rest = text.substr(open_call_tag.size());
    const std::size_t begin = std::min(rest.find_first_not_of(white_space), rest.size());
    if (begin > space_limit) return {};
    Header header = read_header(rest.substr(begin), open_function_tag);
    header.length += open_call_tag.size() + begin;
    return header;
  }
  Header header = read_header(text, open_function_tag);
  if (header.found == Found::yes && !schemas_.declares(header.name)) return {};
  if (header.found == Found::no) header.found = wrapper;
  return header;
}

Found ToolCallReader::find_call(std::string_view text) const { return read_opening(text).found; }

std::size_t ToolCallReader::open_call(std::string_view text) {
  const Header header = read_opening(text);
  in_tool_call_ = find_tag(text, open_call_tag) == Found::yes;
  begin_function(header.name);
  return header.length;
}

std::size_t ToolCallReader::read(std::string_view text, bool ends) {
  std::size_t used = 0;
  while (inside()) {
    const Place before = place_;
    const std::string_view rest = text.substr(used);
    const std::size_t step = before == Place::in_value      ? read_in_value(rest, ends)
                             : before == Place::in_function ? read_in_function(rest, ends)
                                                            : read_between_functions(rest);
    used += step;
    if (step == 0 && place_ == before) break;
  }
  return used;
}

/// After </function>: another function, </tool_call>, or text that shows </tool_call> to be missing.
std::size_t ToolCallReader::read_between_functions(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(white_space), text.size());
  const std::string_view rest = text.substr(begin);
  const Header next = read_header(rest, open_function_tag);
  if (next.found == Found::yes) {
    begin_function(next.name);
    return begin + next.length;
  }
  const Found close = find_tag(rest, close_call_tag);
  if (close == Found::yes) {
    place_ = Place::outside;
    return begin + close_call_tag.size();
  }
  if (next.found == Found::no && close == Found::no) place_ = Place::outside;
  return begin;
}

/// Between parameters; what is no tag is left out.
std::size_t ToolCallReader::read_in_function(std::string_view text, bool ends) {
  const std::size_t begin = std::min(text.find('<'), text.size());
  const std::string_view rest = text.substr(begin);
  if (rest.empty()) return begin;
  const Header parameter = read_header(rest, open_parameter_tag);
  if (parameter.found == Found::yes) {
    begin_value(parameter.name);
    return begin + parameter.length;
  }
  const Found close = find_tag(rest, close_function_tag), close_call = find_tag(rest, close_call_tag);
  const Found next_call = find_call(rest);
  if (close == Found::yes) {
    end_function();
    return begin + close_function_tag.size();
  }
  if (close_call == Found::yes || next_call == Found::yes) {
    end_function();
    if (next_call == Found::yes) place_ = Place::outside;
    return begin;
  }
  const bool unknown = parameter.found == Found::unknown_yet || close == Found::unknown_yet ||
                       close_call == Found::unknown_yet || next_call == Found::unknown_yet;
  return unknown && !ends ? begin : begin + 1;
}

std::size_t ToolCallReader::read_in_value(std::string_view text, bool ends) {
  std::size_t used = 0;
  while (used < text.size()) {
    const std::size_t tag = std::min(text.find('<', used), text.size());
    add_value(text.substr(used, tag - used));
    used = tag;
    if (used == text.size()) break;
    const std::string_view rest = text.substr(used);
    const Found found = ends_value(rest, ends);
    if (found == Found::unknown_yet) break;
    if (found == Found::yes) {
      end_value(true);
      return used + (rest.starts_with(close_parameter_tag) ? close_parameter_tag.size() : 0);
    }
    add_value("<");
    ++used;
  }
  return used;
}

Found ToolCallReader::ends_value(std::string_view text, bool ends) const {
  const auto after = [&](std::string_view tag, std::initializer_list<std::string_view> next) {
    return both(find_tag(text, tag), [&] { return find_after_space(text.substr(tag.size()), next, ends); });
  };
  const Found endings[] = {
      after(close_parameter_tag, {open_parameter_tag, close_function_tag, close_call_tag, open_call_tag}),
      after(close_function_tag, {close_call_tag, open_call_tag, open_function_tag}),
      after(close_call_tag, {open_call_tag}),
      is_next_parameter(text),
  };
  Found found = Found::no;
  for (Found one : endings) {
    if (one == Found::yes) return one;
    if (one == Found::unknown_yet) found = one;
  }
  // A tag that the end of the reply cut off is no part of the value; a lone "<" inside a line is.
  if (ends && found == Found::unknown_yet) return at_line_start_ || text.size() > 1 ? Found::yes : Found::no;
  return found;
}

/// <parameter=KEY> inside a value, where it can only be the next parameter.
Found ToolCallReader::is_next_parameter(std::string_view text) const {
  const Header header = read_header(text, open_parameter_tag);
  if (header.found != Found::yes) return header.found;
  if (!schemas_.lists_parameters(function_)) return at_line_start_ ? Found::yes : Found::no;
  const bool given = std::find(given_.begin(), given_.end(), header.name) != given_.end();
  return !given && schemas_.declares(function_, header.name) ? Found::yes : Found::no;
}

void ToolCallReader::begin_function(const std::string& name) {
  place_ = Place::in_function;
  function_ = name;
  given_.clear();
  any_written_ = false;
  events_.begin_call(name);
  events_.add_arguments("{");
}

void ToolCallReader::begin_value(const std::string& key) {
  place_ = Place::in_value;
  key_ = key;
  type_ = schemas_.type_of(function_, key);
  ignored_ = std::find(given_.begin(), given_.end(), key) != given_.end();
  if (!ignored_) given_.push_back(key);
  value_.clear();
  value_begun_ = held_line_break_ = false;
  at_line_start_ = true;
  if (ignored_ || !type_.is_only_string()) return;
  write_key();
  events_.add_arguments("\"");
}

void ToolCallReader::write_key() {
  std::string json = any_written_ ? ", \"" : "\"";
  append_json_escaped(json, key_);
  events_.add_arguments(json += "\": ");
  any_written_ = true;
}

void ToolCallReader::add_value(std::string_view text) {
  if (text.empty()) return;
  if (!value_begun_ && text.front() == '\n') text.remove_prefix(1);
  value_begun_ = true;
  if (text.empty()) return;
  if (held_line_break_) pass_on("\n");
  held_line_break_ = at_line_start_ = text.back() == '\n';
  if (held_line_break_) text.remove_suffix(1);
  pass_on(text);
}

void ToolCallReader::pass_on(std::string_view text) {
  if (ignored_) return;
  if (!type_.is_only_string()) {
    value_ += text;
    return;
  }
  std::string json;
  append_json_escaped(json, text);
  events_.add_arguments(json);
}

/// closed: not cut off by the end of the reply.
void ToolCallReader::end_value(bool closed) {
  place_ = Place::in_function;
  if (ignored_) return;
  if (type_.is_only_string()) return events_.add_arguments("\"");
  const auto typed = closed ? typed_value(value_, type_) : typed_unfinished_value(value_, type_);
  if (!typed) return;
  write_key();
  events_.add_arguments(*typed);
}

void ToolCallReader::end_function() {
  place_ = in_tool_call_ ? Place::between_functions : Place::outside;
  events_.add_arguments("}");
}

void ToolCallReader::finish() {
  if (place_ == Place::in_value) end_value(false);
  if (place_ == Place::in_function) end_function();
  place_ = Place::outside;
}

}  // namespace sluice
