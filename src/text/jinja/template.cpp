#include "text/jinja/template.h"

#include "base/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"

namespace sluice::jinja {

Template::Template(std::string_view source, std::string_view what) : tree_(parse_template(source, what)) {}

std::string Template::render(const Json& variables) const {
  Interpreter interpreter(*tree_);
  try {
    for (const auto& [name, value] : variables.items()) interpreter.define(name, Value::from_json(value));
  } catch (const RenderError& error) {
    fail<RequestError>("{}: the values given to the template: {}", tree_->what, error.what());
  }
  return interpreter.run();
}

}  // namespace sluice::jinja
