#include "apps/bench_shapes.h"

#include <gtest/gtest.h>

#include "apps/bench_limits.h"
#include "apps/model_sizes.h"
#include "base/error.h"
#include "models/qwen3_5_config.h"

namespace sluice {
namespace {

struct Published {
  const char* name;
  double text_parameters;  // billions
};

class Shapes : public testing::TestWithParam<Published> {};

TEST_P(Shapes, RandomWeightsHaveAsManyParametersAsPublished) {
  const Json config = shape_config(GetParam().name);
  const double parameters = static_cast<double>(shape_weights(GetParam().name, config)->total_bytes()) / 2e9;
  EXPECT_NEAR(parameters, GetParam().text_parameters, 0.0006 * GetParam().text_parameters + 0.0005);
}

TEST_P(Shapes, SizesCountTheMatricesOfTheCheckpoint) {
  const Json config = shape_config(GetParam().name);
  const Qwen3_5Config parsed = parse_qwen3_5_config(config);
  const ModelSizes sizes = model_sizes(parsed);
  const auto checkpoint = shape_weights(GetParam().name, config);
  double stored = 0.0;
  for (const std::string& name : checkpoint->names()) {
    const StoredTensor& tensor = *checkpoint->find(name);
    const bool is_matrix = tensor.shape.size() == 2 || name.find(".experts.") != std::string::npos;
    const bool is_embedding = name.find("embed_tokens") != std::string::npos && !parsed.tie_word_embeddings;
    if (is_matrix && !is_embedding) stored += static_cast<double>(tensor.elements());
  }
  EXPECT_DOUBLE_EQ(stored, sizes.dense_parameters + sizes.head_parameters +
                               sizes.expert_layers * sizes.experts * sizes.expert_parameters);
}

INSTANTIATE_TEST_SUITE_P(Published, Shapes,
                         testing::Values(Published{"qwen3.5-0.8b", 0.752}, Published{"qwen3.5-2b", 1.882},
                                         Published{"qwen3.5-4b", 4.206}, Published{"qwen3.5-9b", 8.954},
                                         Published{"qwen3.5-27b", 26.896}, Published{"qwen3.5-35b-a3b", 34.661},
                                         Published{"qwen3.5-122b-a10b", 122.11}),
                         [](const auto& shape) { return "n" + std::to_string(shape.index); });

TEST(Shape, AnUnknownNameListsTheKnownOnes) {
  try {
    shape_config("qwen9");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("qwen3.5-0.8b"), std::string::npos);
  }
}

TEST(ModelSizes, StateAndCachesAreThoseOfThePublishedTable) {
  const Qwen3_5Config config = parse_qwen3_5_config(shape_config("qwen3.5-27b"));
  const CacheNeeds needs = cache_needs_of(config, false);
  EXPECT_EQ(needs.state_layers * needs.value_heads * needs.key_dim * needs.value_dim * 4, std::int64_t{144} << 20);
  EXPECT_EQ(needs.kv_layers * 2 * needs.kv_heads * needs.head_dim * 2, 64 << 10);
}

TEST(ModelSizes, ALargeBatchReadsAllExpertsAndOneTokenItsOwn) {
  const ModelSizes sizes = model_sizes(parse_qwen3_5_config(shape_config("qwen3.5-35b-a3b")));
  EXPECT_NEAR(sizes.experts_read(1), 8.0, 1e-9);
  EXPECT_NEAR(sizes.experts_read(4096), 256.0, 1e-9);
  EXPECT_EQ(model_sizes(parse_qwen3_5_config(shape_config("qwen3.5-2b"))).experts_read(4), 0.0);
}

}  // namespace
}  // namespace sluice
