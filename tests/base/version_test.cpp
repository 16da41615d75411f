#include "base/version.h"

#include <regex>
#include <string>

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Version, IsThreeNumbers) {
  EXPECT_TRUE(std::regex_match(std::string(version()), std::regex("[0-9]+\\.[0-9]+\\.[0-9]+"))) << version();
}

TEST(Version, NamesACommitOrSaysUnknown) {
  EXPECT_TRUE(std::regex_match(std::string(commit()), std::regex("[0-9a-f]{12,40}(-dirty)?|unknown"))) << commit();
}

TEST(Version, BuildOptionsNameCompilerTypeAndBackend) {
  EXPECT_TRUE(std::regex_search(std::string(build_options()), std::regex("^(GNU|Clang) [0-9.]+, [A-Za-z]+, cpu")))
      << build_options();
}

}  // namespace
}  // namespace sluice
