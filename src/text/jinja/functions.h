#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace sluice::jinja {

/// The functions every chat template can call: range, dict, namespace, raise_exception, strftime_now.
/// `namespaces` receives every namespace that is made.
std::vector<std::pair<std::string, Value>> global_functions(std::vector<std::shared_ptr<Namespace>>& namespaces);

}  // namespace sluice::jinja
