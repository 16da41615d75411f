#include "apps/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace sluice {

namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    if (end != 0 && !text.empty()) parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::int64_t parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    fail<UsageError>("\"{}\" is not a whole number", text);
  }
  return value;
}

double parse_number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    fail<UsageError>("\"{}\" is not a number", text);
  }
  return value;
}

bool parse_flag(std::string_view text) {
  if (text == "true" || text == "1" || text == "on" || text == "yes") return true;
  if (text == "false" || text == "0" || text == "off" || text == "no") return false;
  fail<UsageError>("\"{}\" is neither true nor false", text);
}

template <class T>
void check_range(const Option<T>& option, double value) {
  if (value >= option.low && value <= option.high) return;
  if (option.high >= 1e9) fail<UsageError>("{} is out of range, expected at least {}", value, option.low);
  fail<UsageError>("{} is out of range, expected {} to {}", value, option.low, option.high);
}

void check_choice(std::string_view choices, const std::string& value) {
  if (choices.find('|') == std::string_view::npos) return;
  const std::vector<std::string> allowed = split(choices, '|');
  if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
    fail<UsageError>("\"{}\" is unknown, expected {}", value, fmt::join(allowed, ", "));
  }
}

const std::string& single(const std::vector<std::string>& texts) {
  if (texts.size() != 1) fail<UsageError>("{} values, expected one", texts.size());
  return texts.front();
}

}  // namespace

std::string OptionEntry::key() const {
  const std::string& name = names.front();
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

std::string OptionEntry::variable() const {
  std::string variable = "SLUICE_" + key();
  for (char& c : variable) {
    c = c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return variable;
}

template <class T>
OptionEntry& OptionList::append(Option<T>& option) {
  OptionEntry& entry = entries_.emplace_back();
  entry.group = group_;
  entry.names = split(option.names, ' ');
  entry.value_name = option.value_name;
  entry.sentence = option.sentence;
  entry.origin = &option.origin;
  return entry;
}

void OptionList::add_one(Flag& option) {
  OptionEntry& entry = append(option);
  entry.is_flag = true;
  entry.set = [&option](const auto& texts) { option.value = parse_flag(single(texts)); };
}

void OptionList::add_one(Integer& option) {
  OptionEntry& entry = append(option);
  entry.default_text = fmt::to_string(option.value);
  entry.set = [&option](const auto& texts) {
    option.value = parse_integer(single(texts));
    check_range(option, static_cast<double>(option.value));
  };
}

void OptionList::add_one(Number& option) {
  OptionEntry& entry = append(option);
  entry.default_text = fmt::to_string(option.value);
  entry.set = [&option](const auto& texts) {
    option.value = parse_number(single(texts));
    check_range(option, option.value);
  };
}

void OptionList::add_one(Text& option) {
  OptionEntry& entry = append(option);
  entry.default_text = option.value;
  entry.set = [&option](const auto& texts) {
    check_choice(option.value_name, single(texts));
    option.value = texts.front();
  };
}

void OptionList::add_one(Texts& option) {
  OptionEntry& entry = append(option);
  entry.is_repeatable = true;
  entry.set = [&option](const auto& texts) { option.value = texts; };
}

void OptionList::add_one(Integers& option) {
  OptionEntry& entry = append(option);
  entry.default_text = fmt::to_string(fmt::join(option.value, ","));
  entry.set = [&option](const auto& texts) {
    option.value = parse_integers(fmt::to_string(fmt::join(texts, ",")), "it");
    for (const std::int64_t value : option.value) check_range(option, static_cast<double>(value));
  };
}

std::vector<std::int64_t> parse_integers(std::string_view text, std::string_view what) {
  std::vector<std::int64_t> values;
  constexpr std::string_view blanks = " \t\r\n";
  const auto trimmed = [&](std::string_view part) {
    const std::size_t begin = std::min(part.find_first_not_of(blanks), part.size());
    return part.substr(begin, part.find_last_not_of(blanks) + 1 - begin);
  };
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    try {
      values.push_back(parse_integer(trimmed(rest.substr(0, end))));
    } catch (const UsageError& error) {
      fail<UsageError>("{}: {}, expected whole numbers separated by commas", what, error.what());
    }
    if (end + 1 == rest.size()) fail<UsageError>("{}: a number is missing after the last comma", what);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (values.empty()) fail<UsageError>("{}: is empty, expected whole numbers separated by commas", what);
  return values;
}

}  // namespace sluice
