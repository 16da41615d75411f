#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"

namespace sluice::jinja {

struct TemplateTree;

/// A template in the dialect of HF's chat templates: jinja2 3.1 in its immutable sandbox, with trim_blocks,
/// lstrip_blocks and loop controls. Immutable; safe to use from many threads.
class Template {
 public:
  /// Throws LoadError with `what`, line and column. Refuses other templates' inclusion by name.
  Template(std::string_view source, std::string_view what);
  /// variables: an object. Throws RequestError: the words of raise_exception, or what failed with its line; also
  /// when the template takes too many steps or too much memory (budget.h).
  std::string render(const Json& variables) const;

 private:
  std::shared_ptr<const TemplateTree> tree_;
};

}  // namespace sluice::jinja
