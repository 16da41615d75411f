#pragma once
#include <memory>
#include <string_view>

#include "text/jinja/ast.h"

namespace sluice::jinja {

/// Parses a template with the grammar of jinja2 3.1, its loop controls and the "generation" tag.
/// Throws LoadError with `what`, line and column.
std::shared_ptr<const TemplateTree> parse_template(std::string_view text, std::string_view what);

}  // namespace sluice::jinja
