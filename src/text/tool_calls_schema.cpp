#include "text/tool_calls_schema.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace sluice {

namespace {

/// Schemas visited for one parameter; bounds what references to references can cost.
constexpr int schema_limit = 500;
constexpr int depth_limit = 32;
/// Nesting of a value; deeper ones are passed on as strings.
constexpr int value_depth_limit = 100;

struct TypeName {
  std::string_view name;
  std::uint8_t types;
};
/// JSON schema's names, and Python's, which many tools are declared with.
constexpr std::array<TypeName, 16> type_names{{
    {"string", ParameterType::string},
    {"integer", ParameterType::integer},
    {"number", ParameterType::number | ParameterType::integer},
    {"boolean", ParameterType::boolean},
    {"null", ParameterType::null},
    {"array", ParameterType::array},
    {"object", ParameterType::object},
    {"str", ParameterType::string},
    {"text", ParameterType::string},
    {"int", ParameterType::integer},
    {"float", ParameterType::number | ParameterType::integer},
    {"double", ParameterType::number | ParameterType::integer},
    {"bool", ParameterType::boolean},
    {"list", ParameterType::array},
    {"dict", ParameterType::object},
    {"map", ParameterType::object},
}};

std::uint8_t types_named(const Json& name) {
  if (!name.is_string()) return ParameterType::any;
  const auto& text = name.get_ref<const std::string&>();
  const auto* found = std::find_if(type_names.begin(), type_names.end(), [&](auto& row) { return row.name == text; });
  return found == type_names.end() ? std::uint8_t{ParameterType::any} : found->types;
}

std::uint8_t types_of_value(const Json& value) {
  if (value.is_string()) return ParameterType::string;
  if (value.is_boolean()) return ParameterType::boolean;
  if (value.is_number_integer()) return ParameterType::integer;
  if (value.is_number()) return ParameterType::number | ParameterType::integer;
  if (value.is_array()) return ParameterType::array;
  return value.is_object() ? ParameterType::object : ParameterType::null;
}

const Json* member(const Json& from, const char* key) {
  if (!from.is_object()) return nullptr;
  const auto found = from.find(key);
  return found == from.end() ? nullptr : &*found;
}

/// Walks one parameter's schema; root is what local references start from.
class SchemaReader {
 public:
  explicit SchemaReader(const Json& root) : root_(root) {}

  ParameterType read(const Json& schema, int depth = 0) {
    ParameterType type;
    if (depth > depth_limit || ++visited_ > schema_limit || !schema.is_object()) return type;
    if (const Json* reference = member(schema, "$ref"))
      if (const Json* target = resolve(*reference)) narrow(type, read(*target, depth + 1));
    if (const Json* names = member(schema, "type")) {
      std::uint8_t types = 0;
      if (names->is_array())
        for (const Json& name : *names) types |= types_named(name);
      else
        types = types_named(*names);
      narrow(type, {types, {}});
    }
    if (const Json* values = member(schema, "enum"); values && values->is_array())
      narrow(type, of_values({values->begin(), values->end()}));
    if (const Json* value = member(schema, "const")) narrow(type, of_values({*value}));
    for (const char* key : {"anyOf", "oneOf"})
      if (const Json* choices = member(schema, key); choices && choices->is_array() && !choices->empty())
        narrow(type, any_of(*choices, depth));
    if (const Json* parts = member(schema, "allOf"); parts && parts->is_array())
      for (const Json& part : *parts) narrow(type, read(part, depth + 1));
    if (const Json* nullable = member(schema, "nullable"); nullable && *nullable == true)
      type.types |= ParameterType::null;
    return type;
  }

 private:
  const Json* resolve(const Json& reference) const {
    if (!reference.is_string()) return nullptr;
    const auto& text = reference.get_ref<const std::string&>();
    if (!text.starts_with("#")) return nullptr;
    try {
      const Json::json_pointer pointer(text.substr(1));
      return root_.contains(pointer) ? &root_.at(pointer) : nullptr;
    } catch (const Json::exception&) {
      return nullptr;
    }
  }

  static ParameterType of_values(std::vector<Json> values) {
    std::uint8_t types = 0;
    for (const Json& value : values) types |= types_of_value(value);
    return {types ? types : std::uint8_t{ParameterType::any}, std::move(values)};
  }

  ParameterType any_of(const Json& choices, int depth) {
    ParameterType all{0, {}};
    bool limited = true;
    for (const Json& choice : choices) {
      ParameterType one = read(choice, depth + 1);
      all.types |= one.types;
      limited &= !one.values.empty();
      std::move(one.values.begin(), one.values.end(), std::back_inserter(all.values));
    }
    if (!limited) all.values.clear();
    return all;
  }

  /// What both allow; schemas that contradict each other allow what the later one does.
  static void narrow(ParameterType& type, ParameterType other) {
    const auto both = static_cast<std::uint8_t>(type.types & other.types);
    type.types = both ? both : other.types;
    if (type.values.empty()) type.values = std::move(other.values);
  }

  const Json& root_;
  int visited_ = 0;
};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b; });
}

std::string_view take_digits(std::string_view& text) {
  const std::size_t count = std::find_if_not(text.begin(), text.end(), is_digit) - text.begin();
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

struct Number {
  std::string text;  // as JSON writes it
  bool whole = false;
};

/// A decimal number as JSON writes it; unless strict, it may be written with a plus sign, leading zeros, or no digits
/// on one side of the point.
std::optional<Number> read_number(std::string_view text, bool strict) {
  Number number;
  if (!strict && text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('-')) number.text = "-";
  text.remove_prefix(number.text.size());
  std::string_view digits = take_digits(text);
  while (!strict && digits.size() > 1 && digits[0] == '0') digits.remove_prefix(1);
  number.text += digits.empty() && !strict ? "0" : digits;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::string_view fraction = take_digits(text);
    if (digits.empty() && fraction.empty()) return std::nullopt;
    number.text += fraction.empty() && !strict ? ".0" : fmt::format(".{}", fraction);
    number.whole = text.empty() && fraction.find_first_not_of('0') == std::string_view::npos;
  } else {
    if (digits.empty()) return std::nullopt;
    number.whole = text.empty();
  }
  number.text += text;  // an exponent, or what makes it no number
  const bool is_number = text.find_first_not_of("eE+-0123456789") == std::string_view::npos;
  return is_number && Json::accept(number.text) ? std::optional(number) : std::nullopt;
}

bool is_too_deep(std::string_view json) {
  int depth = 0;
  for (char c : json) {
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > value_depth_limit) return true;
  }
  return false;
}

/// The value as one of the types, a string only if that is one of them.
std::optional<std::string> as_one_of(std::string_view text, std::uint8_t types) {
  const std::string_view word = trim(text);
  const auto allows = [&](ParameterType::Bits bit) { return (types & bit) != 0; };
  if (allows(ParameterType::null) && (word == "null" || word == "None")) return "null";
  if (allows(ParameterType::boolean) && equals_ignoring_case(word, "true")) return "true";
  if (allows(ParameterType::boolean) && equals_ignoring_case(word, "false")) return "false";
  if (allows(ParameterType::integer) || allows(ParameterType::number)) {
    const auto number = read_number(word, allows(ParameterType::string));
    if (number && allows(ParameterType::number)) return number->text;
    if (number && number->whole) return number->text.substr(0, number->text.find('.'));
  }
  const bool container = (allows(ParameterType::array) && word.starts_with('[')) ||
                         (allows(ParameterType::object) && word.starts_with('{'));
  // To nlohmann's parser a NUL byte is the end of the text.
  const bool whole = word.find('\0') == std::string_view::npos;
  if (container && whole && !is_too_deep(word) && Json::accept(word)) return std::string(word);
  if (!allows(ParameterType::string)) return std::nullopt;
  std::string quoted = "\"";
  append_json_escaped(quoted, text);
  return quoted += '"';
}

/// The allowed value that the text stands for, where the schema lists them.
std::optional<std::string> as_listed(std::string_view text, const ParameterType& type) {
  for (const Json& value : type.values) {
    if (value.is_string() && value.get_ref<const std::string&>() != text) continue;
    if (!value.is_string()) {
      const auto typed = as_one_of(text, types_of_value(value));
      if (!typed || Json::parse(*typed) != value) continue;
    }
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return std::nullopt;
}

}  // namespace

ToolSchemas::ToolSchemas(const Json& tools) {
  if (!tools.is_array()) return;
  for (const Json& tool : tools) {
    const Json* function = member(tool, "function");
    if (!function) function = &tool;
    const Json* name = member(*function, "name");
    if (!name || !name->is_string()) continue;
    const Json* parameters = member(*function, "parameters");
    if (!parameters) parameters = member(*function, "input_schema");
    functions_.push_back({name->get<std::string>(), parameters ? *parameters : Json()});
  }
}

const ToolSchemas::Function* ToolSchemas::find(std::string_view name) const {
  for (const Function& function : functions_)
    if (function.name == name) return &function;
  return nullptr;
}

bool ToolSchemas::lists_parameters(std::string_view function) const {
  const Function* found = find(function);
  const Json* properties = found ? member(found->parameters, "properties") : nullptr;
  return properties && properties->is_object() && !properties->empty();
}

const Json* ToolSchemas::schema_of(std::string_view function, std::string_view parameter) const {
  const Function* found = find(function);
  const Json* properties = found ? member(found->parameters, "properties") : nullptr;
  return properties ? member(*properties, std::string(parameter).c_str()) : nullptr;
}

bool ToolSchemas::declares(std::string_view function, std::string_view parameter) const {
  return schema_of(function, parameter) != nullptr;
}

ParameterType ToolSchemas::type_of(std::string_view function, std::string_view parameter) const {
  const Json* schema = schema_of(function, parameter);
  return schema ? SchemaReader(find(function)->parameters).read(*schema) : ParameterType{};
}

std::string typed_value(std::string_view text, const ParameterType& type) {
  if (auto listed = as_listed(text, type)) return *std::move(listed);
  if (auto typed = as_one_of(text, type.types)) return *std::move(typed);
  return *as_one_of(text, ParameterType::any);
}

std::optional<std::string> typed_unfinished_value(std::string_view text, const ParameterType& type) {
  if (auto listed = as_listed(text, type)) return listed;
  return as_one_of(text, type.types);
}

void append_json_escaped(std::string& out, std::string_view text) {
  for (char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
          out += c;
    }
  }
}

}  // namespace sluice
