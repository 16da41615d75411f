#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace sluice {

/// What values one parameter of a tool may take, as far as its JSON schema says.
struct ParameterType {
  enum Bits : std::uint8_t {
    null = 1,
    boolean = 2,
    integer = 4,
    number = 8,
    array = 16,
    object = 32,
    string = 64,
    any = 127,
  };
  std::uint8_t types = any;
  std::vector<Json> values;  // those of enum or const; empty: no such limit

  /// Every value is a string, so that its text can be passed on before its end is known.
  bool is_only_string() const { return types == string; }
};

/// The functions of a request's tools: OpenAI's shape, the flat one ({"name", "parameters"}) or Anthropic's
/// ("input_schema"). Entries of another shape are ignored.
class ToolSchemas {
 public:
  explicit ToolSchemas(const Json& tools);
  bool declares(std::string_view function) const { return find(function) != nullptr; }
  /// True if the function lists its parameters.
  bool lists_parameters(std::string_view function) const;
  bool declares(std::string_view function, std::string_view parameter) const;
  /// By type (names or lists), enum, const, nullable, anyOf, oneOf, allOf and local $ref. Anything for a parameter
  /// that is not declared.
  ParameterType type_of(std::string_view function, std::string_view parameter) const;

 private:
  struct Function {
    std::string name;
    Json parameters;
  };
  const Function* find(std::string_view name) const;
  const Json* schema_of(std::string_view function, std::string_view parameter) const;

  std::vector<Function> functions_;
};

/// The JSON text of a value that a reply wrote as plain text. Scalars may be written as Python prints them (True,
/// None), because the family's templates show them so. A string where no allowed type fits.
std::string typed_value(std::string_view text, const ParameterType& type);

/// The same for a value that the end of the reply cut off: none if it is no value of an allowed type yet.
std::optional<std::string> typed_unfinished_value(std::string_view text, const ParameterType& type);

/// Appends text as the inside of a JSON string.
void append_json_escaped(std::string& out, std::string_view text);

}  // namespace sluice
