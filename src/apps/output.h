#pragma once
#include <stdexcept>
#include <string_view>

#include "base/json.h"

namespace sluice {

/// The reader of standard output went away: the program ends quietly.
class BrokenPipe : public std::runtime_error {
 public:
  BrokenPipe() : std::runtime_error("standard output was closed") {}
};

/// Writes to standard output at once. Throws BrokenPipe, or Error when it cannot be written (a full disk).
void write_output(std::string_view text);

/// A JSON value as text, in lines with an indent of 2; bytes that are no UTF-8 become U+FFFD.
std::string indented_json(const Json& value);

/// Writes to standard error; a failure to do so is nobody's business.
void write_error(std::string_view text);

}  // namespace sluice
