#include "server/structure_fields.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "server/api_error.h"

namespace sluice {

namespace {

using Kind = GrammarSource::Kind;

/// The one structure of a reply, and the field that asked for it.
class Structure {
 public:
  void set(GrammarSource source, const std::string& path) {
    if (source_) fail_field(path, fmt::format("a reply has one structure only, and {} gives one already", path_));
    source_ = std::move(source);
    path_ = path;
  }
  std::optional<GrammarSource> take() { return std::move(source_); }

 private:
  std::optional<GrammarSource> source_;
  std::string path_;
};

GrammarSource of_schema(Json schema) {
  GrammarSource source;
  source.kind = Kind::json_schema;
  source.schema = std::move(schema);
  return source;
}

GrammarSource of_text(Kind kind, std::string text) {
  GrammarSource source;
  source.kind = kind;
  source.text = std::move(text);
  return source;
}

/// A schema, or its JSON text.
Json parse_schema(const Json& value, const std::string& path) {
  if (value.is_object()) return value;
  if (!value.is_string()) fail_type(path, "a JSON schema: an object, or one as text", value);
  Json schema;
  try {
    schema = parse_json(value.get_ref<const std::string&>(), path);
  } catch (const LoadError& error) {
    throw ApiError(400, error.what()).with_param(path);
  }
  if (!schema.is_object()) fail_type(path, "a JSON schema: an object, or one as text", value);
  return schema;
}

GrammarSource parse_choices(const Json& list, const std::string& path) {
  GrammarSource source;
  source.kind = Kind::choice;
  if (list.empty()) fail_field(path, "at least one choice is needed");
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_string() || list[i].get_ref<const std::string&>().empty())
      fail_type(fmt::format("{}[{}]", path, i), "a string that is not empty", list[i]);
    source.choices.push_back(list[i].get<std::string>());
  }
  return source;
}

/// PREFIXjson, PREFIXregex, PREFIXchoice, PREFIXgrammar.
void read_guides(Fields& fields, const std::string& prefix, Structure& structure) {
  if (const Json* schema = fields.find(prefix + "json")) {
    const std::string path = fields.path_of(prefix + "json");
    structure.set(of_schema(parse_schema(*schema, path)), path);
  }
  if (auto regex = fields.text(prefix + "regex"))
    structure.set(of_text(Kind::regex, *std::move(regex)), fields.path_of(prefix + "regex"));
  if (const Json* choices = fields.array(prefix + "choice")) {
    const std::string path = fields.path_of(prefix + "choice");
    structure.set(parse_choices(*choices, path), path);
  }
  if (auto grammar = fields.text(prefix + "grammar"))
    structure.set(of_text(Kind::ebnf, *std::move(grammar)), fields.path_of(prefix + "grammar"));
  if (fields.boolean(prefix + "json_object").value_or(false))
    structure.set(GrammarSource{}, fields.path_of(prefix + "json_object"));
}

void read_structured_outputs(Fields& fields, Structure& structure) {
  const Json* object = fields.object("structured_outputs");
  if (object == nullptr) return;
  const std::string path = fields.path_of("structured_outputs");
  Fields inner(*object, path);
  inner.refuse("structural_tag", "use tools, or another kind of structure");
  inner.refuse("whitespace_pattern", "white space follows from the grammar");
  Structure found;
  read_guides(inner, "", found);
  auto source = found.take();
  if (!source) fail_field(path, "expected one of json, regex, choice, grammar, json_object");
  structure.set(*std::move(source), path);
}

}  // namespace

GrammarSource parse_json_schema_format(const Json& format, const std::string& path) {
  Fields fields(format, path);
  fields.required_text("name");
  fields.text("description");
  fields.boolean("strict");  // the schema is kept to in any case
  return of_schema(fields.required_object("schema"));
}

std::optional<GrammarSource> parse_response_format(const Json& format, const std::string& path) {
  Fields fields(format, path);
  fields.required_text("type");
  const auto type = fields.word("type", {"text", "json_object", "json_schema"});
  if (type == "text") return std::nullopt;
  if (type == "json_schema")
    return parse_json_schema_format(fields.required_object("json_schema"), fields.path_of("json_schema"));
  // llama.cpp's way to give a schema.
  if (const Json* schema = fields.object("schema")) return of_schema(*schema);
  return GrammarSource{};
}

std::optional<GrammarSource> read_structure_fields(Fields& fields) {
  Structure structure;
  if (const Json* format = fields.find("response_format")) {
    const std::string path = fields.path_of("response_format");
    if (auto source = parse_response_format(*format, path)) structure.set(*std::move(source), path);
  }
  read_structured_outputs(fields, structure);
  read_guides(fields, "guided_", structure);
  fields.ignore("guided_decoding_backend");
  return structure.take();
}

}  // namespace sluice
