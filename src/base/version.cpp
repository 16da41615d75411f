#include "base/version.h"

#include "generated/commit.h"

namespace sluice {

std::string_view version() { return SLUICE_VERSION; }

std::string_view commit() { return SLUICE_COMMIT; }

std::string_view build_options() { return SLUICE_BUILD_OPTIONS; }

}  // namespace sluice
