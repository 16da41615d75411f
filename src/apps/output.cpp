#include "apps/output.h"

#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "base/error.h"

namespace sluice {

void write_output(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) throw BrokenPipe();
    if (written < 0) fail<Error>("standard output: cannot be written: {}", std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string indented_json(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_error(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace sluice
