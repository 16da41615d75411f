// Fields of the config that the other golden checkpoints leave at their usual values.
#include <gtest/gtest.h>

#include "models/qwen3_5_config.h"
#include "models/qwen3_5_rope.h"
#include "support/golden.h"
#include "support/rewrite_checkpoint.h"
#include "support/temporary_directory.h"

namespace sluice::test {
namespace {

TEST(ConfigVariants, YarnAndAttentionBiasesAnswerAsTheReferenceDoes) {
  const auto directory = source_dir() / "tests/data/golden/text-yarn-bias";
  const Golden golden(directory / "expected.safetensors");
  ModelRunner runner(directory, reference_options);
  ASSERT_EQ(golden.lengths().size(), 4u);
  for (const int length : golden.lengths()) {
    const auto n = std::to_string(length);
    EXPECT_LT(relative_error(runner.run(golden.ids("ids." + n)).logits, golden.rows("logits." + n)), 1e-4) << n;
  }
  EXPECT_EQ(runner.model().info().max_context, 512);
}

// With gate rows of zero the gate is exactly 1/2; a checkpoint without gates and with half the output weights is the
// same.
TEST(ConfigVariants, AttentionWithoutAnOutputGateIsAGateOfOneHalf) {
  const TemporaryDirectory gated, plain;
  constexpr std::int64_t head_rows = 256;
  auto is = [](const NamedTensor& tensor, const char* name) { return tensor.name.find(name) != std::string::npos; };
  auto rewrite_q = [&](NamedTensor tensor, bool keep_gate) {
    const std::size_t part = head_rows * static_cast<std::size_t>(tensor.shape[1]) * 2;
    std::vector<std::byte> kept;
    for (std::size_t at = 0; at < tensor.bytes.size(); at += 2 * part) {
      kept.insert(kept.end(), tensor.bytes.begin() + static_cast<long>(at),
                  tensor.bytes.begin() + static_cast<long>(at + part));
      if (keep_gate) kept.insert(kept.end(), part, std::byte{0});
    }
    tensor.bytes = kept;
    if (!keep_gate) tensor.shape[0] /= 2;
    return tensor;
  };
  rewrite_checkpoint(
      dense_golden(), gated.path(),
      [&](NamedTensor tensor) -> std::vector<NamedTensor> {
        return {is(tensor, "q_proj") ? rewrite_q(std::move(tensor), true) : std::move(tensor)};
      },
      [](Json&) {});
  rewrite_checkpoint(
      dense_golden(), plain.path(),
      [&](NamedTensor tensor) -> std::vector<NamedTensor> {
        if (is(tensor, "q_proj")) return {rewrite_q(std::move(tensor), false)};
        if (!is(tensor, "o_proj")) return {std::move(tensor)};
        for (std::size_t i = 0; i < tensor.bytes.size() / 2; ++i) {
          const std::uint16_t half = float_to_bf16(0.5f * load_float(DType::bf16, tensor.bytes.data(), i));
          std::memcpy(tensor.bytes.data() + 2 * i, &half, 2);
        }
        return {std::move(tensor)};
      },
      [](Json& config) { config["text_config"]["attn_output_gate"] = false; });
  const auto ids = Golden(dense_golden() / "expected.safetensors").ids("ids.65");
  EXPECT_EQ(ModelRunner(plain.path(), reference_options).run(ids, 0, true).logits,
            ModelRunner(gated.path(), reference_options).run(ids, 0, true).logits);
}

TEST(ConfigVariants, ASigmoidOutputGateOfTheDeltaNetIsHonoured) {
  const auto checkpoint = open_safetensors(dense_golden());
  Json config = read_config(dense_golden());
  config["text_config"]["output_gate_type"] = "sigmoid";
  EXPECT_EQ(parse_qwen3_5_config(config).output_gate, GateActivation::sigmoid);
}

TEST(RopeTable, InterleavesAxesAsTimeHeightWidth) {
  Qwen3_5RopeConfig rope;
  rope.mrope_section = {11, 11, 10};
  const RopeTable table = make_rope_table(rope, 32);
  std::vector<std::int32_t> expected;
  for (int i = 0; i < 32; ++i) expected.push_back(i % 3);
  expected[30] = 0;
  EXPECT_EQ(table.axes, expected);
  EXPECT_EQ(std::count(expected.begin(), expected.end(), 0), 11);
}

TEST(RopeTable, PutsSectionsBehindOneAnotherWhenNotInterleaved) {
  Qwen3_5RopeConfig rope;
  rope.mrope_section = {2, 1, 1};
  rope.mrope_interleaved = false;
  EXPECT_EQ(make_rope_table(rope, 4).axes, (std::vector<std::int32_t>{0, 0, 1, 2}));
}

}  // namespace
}  // namespace sluice::test
