#include "weights/random_checkpoint.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "base/check.h"

namespace sluice {
namespace {

std::vector<float> values_of(const Checkpoint& checkpoint, std::string_view name) {
  const StoredTensor& tensor = *checkpoint.find(name);
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  to_float(tensor.dtype, checkpoint.bytes(tensor).data(), values.size(), values.data());
  return values;
}

RandomCheckpoint example() {
  return RandomCheckpoint({{"both", {50, 101}, 0.03f, RandomSign::both},
                           {"positive", {7}, 0.5f, RandomSign::positive},
                           {"negative", {3}, 1.0f, RandomSign::negative}},
                          "an example");
}

TEST(RandomCheckpoint, ValuesKeepTheirSignAndScale) {
  const RandomCheckpoint checkpoint = example();
  double sum = 0.0;
  for (const float value : values_of(checkpoint, "both")) {
    EXPECT_GE(std::abs(value), 0.03f / 4);
    EXPECT_LE(std::abs(value), 0.03f * 4);
    sum += value;
  }
  EXPECT_LT(std::abs(sum / 5050), 0.003);
  for (const float value : values_of(checkpoint, "positive")) EXPECT_GT(value, 0.0f);
  for (const float value : values_of(checkpoint, "negative")) EXPECT_LT(value, 0.0f);
}

TEST(RandomCheckpoint, BytesAreTheSameAfterARelease) {
  const RandomCheckpoint checkpoint = example();
  const std::vector<float> before = values_of(checkpoint, "both");
  checkpoint.release(*checkpoint.find("both"));
  EXPECT_EQ(values_of(checkpoint, "both"), before);
}

TEST(RandomCheckpoint, ListsWhatItWasGiven) {
  const RandomCheckpoint checkpoint = example();
  EXPECT_EQ(checkpoint.names(), (std::vector<std::string>{"both", "negative", "positive"}));
  EXPECT_EQ(checkpoint.total_bytes(), 2u * (5050 + 7 + 3));
  EXPECT_EQ(checkpoint.find("other"), nullptr);
  EXPECT_EQ(checkpoint.find("both")->shape_text(), "[50, 101]");
}

TEST(RandomCheckpoint, ADoubledNameIsABug) {
  EXPECT_THROW(RandomCheckpoint({{"a", {1}}, {"a", {2}}}, "twice"), InternalError);
}

}  // namespace
}  // namespace sluice
