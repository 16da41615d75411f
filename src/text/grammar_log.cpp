// Where xgrammar's messages and failures go.
#include <string>

#include "base/error.h"

namespace xgrammar {

/// A failed check or a source that cannot be compiled.
[[noreturn]] void LogFatalImpl(const std::string& file, int line, const std::string& message);
void LogMessageImpl(const std::string& file, int line, int level, const std::string& message);

void LogFatalImpl(const std::string&, int, const std::string& message) {
  constexpr std::string_view before = ") is false: ";
  const std::size_t check = message.starts_with("Check failed: ") ? message.find(before) : std::string::npos;
  throw sluice::RequestError(check == std::string::npos ? message : message.substr(check + before.size()));
}

/// Warnings about what a schema says and the grammar leaves out; whoever sent it cannot be told here.
void LogMessageImpl(const std::string&, int, int, const std::string&) {}

}  // namespace xgrammar
