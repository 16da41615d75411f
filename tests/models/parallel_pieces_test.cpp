// What a rank keeps of a quantized matrix is the same numbers: each form is cut, put together anew and decoded.
#include "models/parallel_pieces.h"

#include <gtest/gtest.h>

#include "support/quantized_matrices.h"

namespace sluice::test {
namespace {

/// The bytes of a tensor's slice along an axis; `item` elements of it share `item_bytes` bytes.
std::vector<std::byte> slice(const StoredTensor& tensor, const std::vector<std::byte>& data, int axis,
                             const std::vector<Run>& runs) {
  std::size_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(tensor.shape[static_cast<std::size_t>(i)]);
  const std::size_t per_outer = data.size() / outer;
  const auto size = static_cast<std::size_t>(tensor.shape[static_cast<std::size_t>(axis)]);
  std::vector<std::byte> kept;
  for (std::size_t o = 0; o < outer; ++o) {
    for (const Run& run : runs) {
      const std::size_t begin = per_outer * static_cast<std::size_t>(run.begin) / size;
      const std::size_t count = per_outer * static_cast<std::size_t>(run.count) / size;
      const auto* first = data.data() + o * per_outer + begin;
      kept.insert(kept.end(), first, first + count);
    }
  }
  return kept;
}

/// The checkpoint that one rank would hold.
MemoryCheckpoint part_of_rank(MemoryCheckpoint& whole, const std::vector<PlannedTensor>& plan, int rank) {
  MemoryCheckpoint part;
  for (const PlannedTensor& planned : plan) {
    const StoredTensor& tensor = *planned.tensor;
    if (tensor.name == "m.weight_shape") continue;
    // Cut, it would number the groups of the whole matrix.
    if (tensor.name == "m.g_idx" && planned.axis >= 0) continue;
    std::vector<std::byte> bytes = whole.data(tensor.name);
    if (planned.axis >= 0) {
      bytes = slice(tensor, bytes, planned.axis, planned.ranks[static_cast<std::size_t>(rank)]);
    }
    part.add(tensor.name, tensor.dtype, planned.shape(rank), std::move(bytes), tensor.block_type);
  }
  return part;
}

std::vector<float> decoded(const MemoryCheckpoint& checkpoint, std::int64_t out, std::int64_t in) {
  const SourceMatrix matrix = checkpoint.matrix("m", out, in);
  std::vector<float> values(static_cast<std::size_t>(out * in));
  matrix.dequantize(0, out, values.data());
  return values;
}

void expect_same_numbers(const QuantizedForm& form, Along along, const RankRuns& runs, std::int64_t out,
                         std::int64_t in) {
  MemoryCheckpoint whole;
  RandomTensors random(7);
  form.write(whole, random, out, in);
  const std::vector<float> expected = decoded(whole, out, in);
  const Piece piece = matrix_piece(whole, "m", out, in, along);
  if (along == Along::columns && form.name.ends_with("act_order")) {
    EXPECT_EQ(piece.problem(runs), "\"m\" has columns grouped in an order of their own (act-order)") << form.name;
    return;
  }
  ASSERT_EQ(piece.problem(runs), "") << form.name;
  std::vector<PlannedTensor> plan;
  add_cut(plan, piece, {Split::rows, runs, ""});
  for (std::size_t rank = 0; rank < runs.size(); ++rank) {
    const std::int64_t kept = length_of(runs[rank]);
    const std::int64_t rows = along == Along::rows ? kept : out, columns = along == Along::rows ? in : kept;
    const std::vector<float> found = decoded(part_of_rank(whole, plan, static_cast<int>(rank)), rows, columns);
    std::size_t at = 0;
    for (std::int64_t row = 0; row < out; ++row) {
      for (std::int64_t column = 0; column < in; ++column) {
        const std::int64_t place = along == Along::rows ? row : column;
        const bool own = std::ranges::any_of(
            runs[rank], [&](const Run& run) { return place >= run.begin && place < run.begin + run.count; });
        if (!own) continue;
        ASSERT_EQ(found[at++], expected[static_cast<std::size_t>(row * in + column)]) << form.name << " " << row;
      }
    }
    ASSERT_EQ(at, found.size());
  }
}

TEST(ParallelPieces, ACutByRowsKeepsTheNumbers) {
  const RankRuns two_runs{{{0, 128}, {384, 128}}, {{128, 256}}};
  for (const QuantizedForm& form : quantized_forms()) expect_same_numbers(form, Along::rows, two_runs, 512, 768);
}

TEST(ParallelPieces, ACutByColumnsKeepsTheNumbers) {
  const RankRuns two_runs{{{0, 768}, {2304, 768}}, {{768, 1536}}};
  for (const QuantizedForm& form : quantized_forms()) expect_same_numbers(form, Along::columns, two_runs, 256, 3072);
}

TEST(ParallelPieces, TheEdgesAreThoseOfTheForm) {
  struct Row {
    const char* form;
    std::int64_t rows, columns;
  };
  const Row table[] = {{"fp8_block", 128, 128},
                       {"fp8_tensor", 1, 1},
                       {"fp8_row", 1, 1},
                       {"int8_odd_groups", 1, 3},
                       {"nvfp4_modelopt", 1, 16},
                       {"nvfp4_packed", 1, 16},
                       {"mxfp4", 1, 32},
                       {"packed_int4", 1, 32},
                       {"packed_int4_zero_points", 8, 32},
                       {"packed_int8", 1, 4},
                       {"gptq4", 8, 32},
                       {"gptq8", 4, 4},
                       {"awq", 8, 64},
                       {"Q8_0", 1, 32},
                       {"Q4_K", 1, 256}};
  for (const Row& row : table) {
    const auto forms = quantized_forms();
    const auto form = std::ranges::find(forms, row.form, &QuantizedForm::name);
    ASSERT_NE(form, forms.end()) << row.form;
    MemoryCheckpoint checkpoint;
    RandomTensors random(1);
    form->write(checkpoint, random, 256, 768);
    EXPECT_EQ(matrix_piece(checkpoint, "m", 256, 768, Along::rows).edge, row.rows) << row.form;
    EXPECT_EQ(matrix_piece(checkpoint, "m", 256, 768, Along::columns).edge, row.columns) << row.form;
  }
}

}  // namespace
}  // namespace sluice::test
