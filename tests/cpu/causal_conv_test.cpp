#include "cpu/reference.h"
#include "cpu/row_fixture.h"

namespace sluice {
namespace {

class CausalConv : public EachInstructionSet {};
FOR_EACH_INSTRUCTION_SET(CausalConv);

/// Conv states of shuffled slots, filled with noise.
StateView make_state(Source& source, const Places& places, std::int64_t taps, std::int64_t channels) {
  return {source.normal({places.slot_count(), taps - 1, channels}), {}};
}

TEST_P(CausalConv, sums_the_last_taps_of_each_channel_and_keeps_the_inputs_it_will_need) {
  const auto ops = backend();
  for (const auto& [taps, channels] : std::vector<std::pair<std::int64_t, std::int64_t>>{{4, 1040}, {2, 30}, {5, 64}}) {
    Source source;
    const std::vector<Piece> pieces{{0, 10}, {5, 1}, {5, 2}, {7, 3}, {1, 0}};
    const Places places(source, 5, 32);
    const BatchView batch = make_batch(source, places, pieces);
    const StateView state = make_state(source, places, taps, channels);
    const Tensor x = source.strided(16, channels);
    const Tensor weight = source.normal({channels, taps});
    auto slots = values_of(state.conv.reshaped({places.slot_count(), (taps - 1) * channels}));
    std::vector<double> expected;
    std::int64_t row = 0;
    for (std::size_t s = 0; s < pieces.size(); ++s) {
      double* slot = slots.data() + places.slots[s] * (taps - 1) * channels;
      std::vector<std::vector<double>> inputs;
      for (std::int64_t t = 0; t < taps - 1; ++t) inputs.emplace_back(slot + t * channels, slot + (t + 1) * channels);
      for (std::int32_t r = 0; r < pieces[s].rows; ++r, ++row) {
        inputs.push_back(reference::row_of(x.row<float>(row), channels));
        for (std::int64_t c = 0; c < channels; ++c) {
          double sum = 0.0;
          for (std::int64_t t = 0; t < taps; ++t) {
            sum += static_cast<double>(weight.as<float>()[c * taps + t]) *
                   inputs[inputs.size() - static_cast<std::size_t>(taps - t)][static_cast<std::size_t>(c)];
          }
          expected.push_back(reference::silu(sum));
        }
      }
      for (std::int64_t t = 0; t < taps - 1; ++t) {
        const auto& kept = inputs[inputs.size() - static_cast<std::size_t>(taps - 1 - t)];
        std::copy(kept.begin(), kept.end(), slot + t * channels);
      }
    }
    expect_close(ops->causal_conv(x, weight, state, batch), expected);
    EXPECT_EQ(values_of(state.conv.reshaped({places.slot_count(), (taps - 1) * channels})), slots);
  }
}

TEST_P(CausalConv, no_bit_depends_on_how_the_rows_are_cut) {
  const auto ops = backend();
  Source source;
  const std::int64_t channels = 600;
  const Places places(source, 1, 64);
  const StateView state = make_state(source, places, 4, channels);
  const StateView same{source.copy(state.conv), {}};
  const Tensor x = source.normal({40, channels});
  const Tensor weight = source.normal({channels, 4});
  const Tensor whole = ops->causal_conv(x, weight, state, make_batch(source, places, {{0, 40}}));
  std::int32_t done = 0;
  for (const std::int32_t rows : {1, 2, 3, 10, 1, 1, 22}) {
    const BatchView batch = make_batch(source, places, {{done, rows}});
    const Tensor part = ops->causal_conv(x.slice(0, done, rows), weight, same, batch);
    expect_same_rows(part, 0, rows, whole, done);
    done += rows;
  }
  EXPECT_EQ(values_of(state.conv), values_of(same.conv));
}

}  // namespace
}  // namespace sluice
