#include "apps/generation.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice {
namespace {

const Json sampled = Json::parse(R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95})");

TEST(SamplingDefaults, GenerationConfigStandsWhereNoFlagIsGiven) {
  const SamplingParams params = sampling_params({}, {}, sampled);
  EXPECT_FLOAT_EQ(params.temperature, 0.6f);
  EXPECT_EQ(params.top_k, 20);
  EXPECT_FLOAT_EQ(params.top_p, 0.95f);
  EXPECT_FLOAT_EQ(params.min_p, 0.0f);
}

TEST(SamplingDefaults, FlagsWinOverGenerationConfig) {
  SamplingFlags flags;
  flags.temperature.value = 0.0;
  flags.temperature.origin = Origin::file;
  const SamplingParams params = sampling_params(flags, {}, sampled);
  EXPECT_FLOAT_EQ(params.temperature, 0.0f);
  EXPECT_EQ(params.top_k, 20);
}

TEST(SamplingDefaults, WithoutSamplingTheBestTokenIsTaken) {
  const Json greedy = Json::parse(R"({"do_sample": false, "temperature": 0.6})");
  EXPECT_FLOAT_EQ(sampling_params({}, {}, greedy).temperature, 0.0f);
  SamplingFlags flags;
  flags.temperature.value = 0.7;
  flags.temperature.origin = Origin::command_line;
  EXPECT_FLOAT_EQ(sampling_params(flags, {}, greedy).temperature, 0.7f);
}

TEST(SamplingDefaults, ABrokenGenerationConfigIsNamed) {
  EXPECT_THROW(sampling_params({}, {}, Json::parse(R"({"top_p": "high"})")), LoadError);
  EXPECT_THROW(sampling_params({}, {}, Json::parse(R"({"top_p": 2})")), LoadError);
}

TEST(SamplingDefaults, ASeedIsOnlyThereWhenGiven) {
  EXPECT_FALSE(sampling_params({}, {}, nullptr).seed.has_value());
  EngineFlags engine;
  engine.seed.origin = Origin::command_line;
  EXPECT_EQ(sampling_params({}, engine, nullptr).seed, 0u);
}

TEST(Reasoning, APromptThatEndsInAnOpenThinkTagBeginsInside) {
  EXPECT_TRUE(ends_in_reasoning("<|im_start|>assistant\n<think>\n"));
  EXPECT_FALSE(ends_in_reasoning("<|im_start|>assistant\n<think>\n\n</think>\n\n"));
  EXPECT_FALSE(ends_in_reasoning("<|im_start|>assistant\n"));
  EXPECT_FALSE(ends_in_reasoning(""));
}

}  // namespace
}  // namespace sluice
