#pragma once
#include "weights/ggml/blocks.h"

namespace sluice::ggml {

/// Of one of the eight groups of Q4_K and Q5_K, 6 bits each.
struct ScaleMin {
  int scale, minimum;
};

/// Groups 0 to 3 have whole bytes; groups 4 to 7 have 4 bits in the last four bytes, and the two that those leave free.
inline ScaleMin unpack_scale_min(const Byte* scales, int group) {
  if (group < 4) return {scales[group] & 63, scales[group + 4] & 63};
  const int low = scales[group + 4];
  return {(low & 15) | (scales[group - 4] >> 6) << 4, low >> 4 | (scales[group] >> 6) << 4};
}

/// Into bytes that are zero before the first group; in the order of the groups.
inline void pack_scale_min(ScaleMin packed, int group, Byte* scales) {
  if (group < 4) {
    scales[group] = static_cast<Byte>(packed.scale);
    scales[group + 4] = static_cast<Byte>(packed.minimum);
  } else {
    scales[group + 4] = static_cast<Byte>((packed.scale & 15) | (packed.minimum & 15) << 4);
    scales[group - 4] |= static_cast<Byte>(packed.scale >> 4 << 6);
    scales[group] |= static_cast<Byte>(packed.minimum >> 4 << 6);
  }
}

}  // namespace sluice::ggml
