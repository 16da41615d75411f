#pragma once
#include <string_view>

namespace sluice {

/// The released version, "0.1.0".
std::string_view version();

/// The commit the program was built from, 12 digits, with "-dirty" if tracked files differed; "unknown"
/// without git.
std::string_view commit();

/// Compiler, build type, backends and sanitizers, for people to read.
std::string_view build_options();

}  // namespace sluice
