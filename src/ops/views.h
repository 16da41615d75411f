#pragma once
#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace sluice {

/// The rows of one step: tokens of many sequences, one after another, without padding. All on the device.
struct BatchView {
  Tensor token_ids;        // [rows] int32
  Tensor positions;        // [3, rows] int32: time, height, width
  Tensor sequence_starts;  // [sequences + 1] int32: first row of each sequence, then rows
  Tensor context_lengths;  // [sequences] int32: tokens in the caches before this step
  Tensor block_table;      // [sequences, blocks] int32: KV blocks of each sequence in order; -1 beyond the last
  Tensor state_slots;      // [sequences] int32
  Tensor score_rows;       // [scored] int32: rows whose logits are wanted

  std::int64_t rows() const { return token_ids.size(0); }
  std::int64_t sequences() const { return state_slots.size(0); }
};

/// Keys and values of one attention layer, in pages. [blocks, kv_heads, block_size, head_dim] each.
struct KvView {
  Tensor keys, values;
  std::int64_t block_size() const { return keys.size(2); }
};

/// State of one delta-net layer, one slot a sequence. A zeroed slot is a fresh sequence.
struct StateView {
  Tensor conv;       // [slots, taps - 1, channels] float32: the last inputs, before the activation
  Tensor recurrent;  // [slots, value_heads, key_dim * value_dim] float32; inner order is the backend's own
};

/// Caches of all layers: kv and state in the order of their layers; the draft head's KV is the last of kv.
struct LayerCaches {
  std::vector<KvView> kv;
  std::vector<StateView> state;
};

/// What a model needs of the caches, for each sequence and token.
struct CacheNeeds {
  std::int64_t kv_layers = 0, kv_heads = 0, head_dim = 0;
  std::int64_t state_layers = 0, conv_taps = 0, conv_channels = 0;
  std::int64_t value_heads = 0, key_dim = 0, value_dim = 0;
};

/// Rotary embedding of the first 2 * frequencies dimensions of a head, rotate-half form.
struct Rope {
  Tensor inverse_frequencies;  // [frequencies] float32, on the device
  Tensor axes;                 // [frequencies] int32: which of the three positions turns this frequency
  float scale = 1.0f;          // multiplies cos and sin (YaRN's attention factor)
};

/// Which experts each row goes to. [rows, experts_per_token] each.
struct Routing {
  Tensor experts;  // int32
  Tensor weights;  // float32, sum 1 a row
};

}  // namespace sluice
