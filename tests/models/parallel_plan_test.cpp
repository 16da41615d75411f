#include "models/parallel_plan.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/model_headers.h"
#include "support/temporary_directory.h"

namespace sluice::test {
namespace {

constexpr ModelSizes of_0_8b{1024, 3584, 0, 8, 2, 16}, of_27b{5120, 17408, 0, 24, 4, 48},
    of_35b{2048, 512, 256, 16, 2, 32};

Qwen3_5Config config_of(const ModelSizes& sizes) { return parse_qwen3_5_config(model_config(sizes)); }

/// A checkpoint and a plan that refers to it.
struct Planned {
  Planned(const ModelSizes& sizes, AddMatrix add, int ranks, bool tiled = false)
      : Planned(sizes, add, add, ranks, tiled) {}
  Planned(const ModelSizes& sizes, AddMatrix add, AddMatrix add_attention, int ranks, bool tiled = false)
      : checkpoint(model_headers(sizes, add, add_attention)) {
    checkpoint.meaning.value_heads_tiled = tiled;
    plan = plan_parallel(config_of(sizes), checkpoint, ranks);
  }
  const PlannedTensor& at(std::string_view name) const {
    const auto found = std::ranges::find_if(plan.tensors, [&](const auto& t) { return t.tensor->name == name; });
    if (found == plan.tensors.end()) throw std::runtime_error(fmt::format("{} is not planned", name));
    return *found;
  }
  HeaderCheckpoint checkpoint;
  ParallelPlan plan;
};

std::string refusal(const ModelSizes& sizes, AddMatrix add, int ranks) {
  return message_of<LoadError>([&] { Planned(sizes, add, as_bf16, ranks); });
}

using Runs = std::vector<Run>;
const std::string delta = "model.layers.0.linear_attn.", full = "model.layers.3.self_attn.",
                  mlp = "model.layers.1.mlp.";

TEST(ParallelPlan, DeltaNetsAreCutByKeyHeadsWithTheirValueHeads) {
  const Planned planned(of_27b, as_bf16, 8);
  const Runs segments{{3 * 256, 256}, {2048 + 3 * 256, 256}, {4096 + 3 * 768, 768}};
  EXPECT_EQ(planned.at(delta + "in_proj_qkv.weight").ranks[3], segments);
  EXPECT_EQ(planned.at(delta + "conv1d.weight").ranks[3], segments);
  EXPECT_EQ(planned.at(delta + "in_proj_qkv.weight").split, Split::segments);
  for (const char* name : {"in_proj_a.weight", "in_proj_b.weight", "A_log", "dt_bias"}) {
    EXPECT_EQ(planned.at(delta + name).ranks[3], (Runs{{18, 6}})) << name;
  }
  EXPECT_EQ(planned.at(delta + "in_proj_z.weight").ranks[3], (Runs{{3 * 768, 768}}));
  EXPECT_EQ(planned.at(delta + "out_proj.weight").ranks[3], (Runs{{3 * 768, 768}}));
  EXPECT_EQ(planned.at(delta + "out_proj.weight").axis, 1);
  EXPECT_EQ(planned.at(delta + "norm.weight").copies, 8);
}

TEST(ParallelPlan, TiledValueHeadsAreThoseOfTheRanksKeyHeads) {
  const Planned planned(of_27b, as_bf16, 8, true);
  EXPECT_EQ(planned.at(delta + "A_log").ranks[3], (Runs{{6, 2}, {16 + 6, 2}, {32 + 6, 2}}));
  EXPECT_EQ(planned.at(delta + "out_proj.weight").ranks[3], (Runs{{6 * 128, 256}, {22 * 128, 256}, {38 * 128, 256}}));
  EXPECT_EQ(planned.at(delta + "in_proj_qkv.weight").ranks[0],
            (Runs{{0, 256}, {2048, 256}, {4096, 256}, {4096 + 2048, 256}, {4096 + 4096, 256}}));
}

TEST(ParallelPlan, AttentionIsCutByHeadsAndFewKvHeadsAreRepeated) {
  const Planned planned(of_27b, as_bf16, 8);
  EXPECT_EQ(planned.at(full + "q_proj.weight").ranks[5], (Runs{{5 * 3 * 512, 3 * 512}}));
  EXPECT_EQ(planned.at(full + "o_proj.weight").ranks[5], (Runs{{5 * 3 * 256, 3 * 256}}));
  EXPECT_EQ(planned.at(full + "o_proj.weight").axis, 1);
  for (int rank = 0; rank < 8; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    EXPECT_EQ(planned.at(full + "k_proj.weight").ranks[index], (Runs{{rank / 2 * 256, 256}}));
    EXPECT_EQ(planned.at(full + "v_proj.weight").ranks[index], (Runs{{rank / 2 * 256, 256}}));
  }
  EXPECT_EQ(planned.at(full + "k_proj.weight").copies, 2);
  EXPECT_EQ(Planned(of_27b, as_bf16, 2).at(full + "k_proj.weight").ranks[1], (Runs{{512, 512}}));
}

TEST(ParallelPlan, MlpsAreCutByIntermediateColumnsAndTheVocabularyByRows) {
  const Planned planned(of_27b, as_fp8_blocks, as_bf16, 8);
  EXPECT_EQ(planned.at(mlp + "up_proj.weight").ranks[7], (Runs{{7 * 2176, 2176}}));
  EXPECT_EQ(planned.at(mlp + "up_proj.weight_scale_inv").ranks[7], (Runs{{7 * 17, 17}}));
  EXPECT_EQ(planned.at(mlp + "down_proj.weight").shape(7), (std::vector<std::int64_t>{5120, 2176}));
  EXPECT_EQ(planned.at(mlp + "down_proj.weight_scale_inv").shape(7), (std::vector<std::int64_t>{40, 17}));
  EXPECT_EQ(planned.at("lm_head.weight").ranks[1], (Runs{{3104, 3104}}));
  EXPECT_EQ(planned.at("model.embed_tokens.weight").bytes(2), 3104u * 5120u * 2u);
  EXPECT_EQ(planned.at("model.layers.0.input_layernorm.weight").split, Split::replicated);
}

TEST(ParallelPlan, ExpertsWhoseBlocksACutWouldGoThroughStayWhole) {
  const Planned planned(of_35b, as_fp8_blocks, 8);
  for (const int e : {0, 31, 32, 255}) {
    for (const char* name : {"gate_proj.weight", "down_proj.weight_scale_inv"}) {
      const PlannedTensor& tensor = planned.at(fmt::format("{}experts.{}.{}", mlp, e, name));
      EXPECT_EQ(tensor.owner, e / 32) << tensor.tensor->name;
      EXPECT_EQ(tensor.split, Split::experts);
    }
  }
  EXPECT_EQ(planned.at(mlp + "shared_expert.down_proj.weight").split, Split::replicated);
  EXPECT_NE(planned.at(mlp + "shared_expert.up_proj.weight").reason.find("64 a rank would cut blocks of 128"),
            std::string::npos);
  const Planned four(of_35b, as_fp8_blocks, 4);
  EXPECT_EQ(four.at(mlp + "experts.9.down_proj.weight").ranks[2], (Runs{{256, 128}}));
  EXPECT_EQ(four.at(mlp + "shared_expert.up_proj.weight_scale_inv").ranks[2], (Runs{{2, 1}}));
}

/// Experts in one tensor with scales of blocks beside it; other matrices of the MLP as they are.
void as_fused_fp8(HeaderCheckpoint& to, const std::string& name, std::int64_t out, std::int64_t in) {
  const std::size_t experts = name.find(".experts.");
  if (experts == std::string::npos) return as_bf16(to, name, out, in);
  const bool down = name.ends_with("down_proj");
  const std::string fused = name.substr(0, experts + 9) + (down ? "down_proj" : "gate_up_proj");
  if (!down) out *= 2;
  to.add(fused, DType::f8_e4m3, {of_35b.experts, out, in});
  to.add(fused + "_scale_inv", DType::bf16, {of_35b.experts, (out + 127) / 128, (in + 127) / 128});
}

TEST(ParallelPlan, ExpertsWithTheirScalesInOneTensorAreSharedOutWhole) {
  const Planned planned(of_35b, as_fused_fp8, as_bf16, 4);
  for (const char* name : {"gate_up_proj", "gate_up_proj_scale_inv", "down_proj", "down_proj_scale_inv"}) {
    const PlannedTensor& tensor = planned.at(mlp + "experts." + name);
    EXPECT_EQ(tensor.split, Split::experts) << name;
    EXPECT_EQ(tensor.axis, 0) << name;
    EXPECT_EQ(tensor.ranks[3], (Runs{{192, 64}})) << name;
  }
}

/// A form of the MLP, and the blocks of it that eight ranks would cut; 0: none.
struct EdgeRow {
  const char* name;
  AddMatrix add;
  std::int64_t intermediate, block;
};

TEST(ParallelPlan, CutsKeepToTheEdgesOfBlocks) {
  const EdgeRow rows[] = {{"bf16", as_bf16, 3592, 0},
                          {"fp8 blocks", as_fp8_blocks, 3584, 128},
                          {"fp8 blocks", as_fp8_blocks, 4096, 0},
                          {"fp8 rows", as_fp8_rows, 3592, 0},
                          {"nvfp4", as_nvfp4, 3584, 0},
                          {"nvfp4", as_nvfp4, 3648, 16},
                          {"mxfp4", as_mxfp4, 3584, 0},
                          {"mxfp4", as_mxfp4, 3712, 32},
                          {"gptq", as_gptq, 3584, 128},
                          {"gptq", as_gptq, 4096, 0},
                          {"Q8_0", as_blocks<q8_0>, 3584, 0},
                          {"Q8_0", as_blocks<q8_0>, 3712, 32},
                          {"Q4_K", as_blocks<q4_k>, 3584, 256},
                          {"Q4_K", as_blocks<q4_k>, 4096, 0}};
  for (const EdgeRow& row : rows) {
    ModelSizes sizes = of_0_8b;
    sizes.intermediate = row.intermediate;
    const std::string message = refusal(sizes, row.add, 8);
    if (row.block == 0) {
      EXPECT_EQ(message, "") << row.name << " " << row.intermediate;
    } else {
      EXPECT_NE(message.find(fmt::format("would cut blocks of {}", row.block)), std::string::npos)
          << row.name << " " << row.intermediate << ": " << message;
    }
  }
}

TEST(ParallelPlan, ARefusalSaysWhatWouldDo) {
  const std::string message = refusal(of_0_8b, as_fp8_blocks, 8);
  EXPECT_NE(message.find("\"model.layers.0.mlp.gate_proj\" has 3584 rows, of which 448 a rank would cut blocks of 128"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("4 ranks would do"), std::string::npos) << message;
  ModelSizes odd = of_27b;
  odd.heads = 20;
  EXPECT_NE(refusal(odd, as_bf16, 8).find("num_attention_heads is 20, which 8 ranks cannot share evenly"),
            std::string::npos);
  EXPECT_NE(refusal(odd, as_bf16, 16).find("4 ranks would do"), std::string::npos);
  EXPECT_NE(refusal(of_27b, as_bf16, 32).find("linear_num_key_heads is 16"), std::string::npos);
}

TEST(ParallelPlan, ATensorWithoutAPlaceIsAnError) {
  HeaderCheckpoint checkpoint = model_headers(of_0_8b, as_bf16, as_bf16);
  checkpoint.add("model.layers.2.mlp.other.weight", DType::bf16, {4});
  EXPECT_NE(message_of<LoadError>([&] { plan_parallel(config_of(of_0_8b), checkpoint, 2); }).find("mlp.other.weight"),
            std::string::npos);
}

/// How often each element along the cut is kept.
std::vector<int> times_kept(const PlannedTensor& planned, int ranks) {
  if (planned.axis < 0) {
    int kept = 0;
    for (int rank = 0; rank < ranks; ++rank) kept += planned.kept_by(rank) ? 1 : 0;
    return {kept};
  }
  std::vector<int> times(static_cast<std::size_t>(planned.tensor->shape[static_cast<std::size_t>(planned.axis)]));
  for (const Runs& runs : planned.ranks) {
    for (const Run& run : runs) {
      for (std::int64_t i = run.begin; i < run.begin + run.count; ++i) ++times.at(static_cast<std::size_t>(i));
    }
  }
  return times;
}

TEST(ParallelPlan, EveryElementIsKeptAsOftenAsThePlanSays) {
  for (const ModelSizes& sizes : {of_0_8b, of_27b, of_35b}) {
    for (const AddMatrix add : {as_bf16, as_fp8_blocks, as_nvfp4, as_blocks<q8_0>}) {
      for (const int ranks : {1, 2, 4, 8}) {
        if (sizes.intermediate == 3584 && add == as_fp8_blocks && ranks == 8) continue;  // refused
        const Planned planned(sizes, add, ranks, ranks == 4);
        EXPECT_EQ(planned.plan.tensors.size(), planned.checkpoint.names().size());
        std::uint64_t kept = 0;
        for (const PlannedTensor& tensor : planned.plan.tensors) {
          for (const int times : times_kept(tensor, ranks)) ASSERT_EQ(times, tensor.copies) << tensor.tensor->name;
          kept += static_cast<std::uint64_t>(tensor.copies) * tensor.tensor->byte_size();
        }
        std::uint64_t of_ranks = 0;
        for (const std::uint64_t bytes : planned.plan.bytes) of_ranks += bytes;
        EXPECT_EQ(of_ranks, kept);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::test
