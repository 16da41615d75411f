#include "apps/command_options.h"

#include "base/error.h"

namespace sluice {

void EngineFlags::refuse_unsupported() const {
  refuse_unsupported_on_one_device();
  if (*tensor_parallel_size > 1) {
    fail<UsageError>("--tensor-parallel-size {}: not in this build; use 1", *tensor_parallel_size);
  }
}

void EngineFlags::refuse_unsupported_on_one_device() const {
  if (*device != "auto" && *device != "cpu") {
    const bool known = device->substr(0, 4) == "cuda";
    if (known) fail<UsageError>("--device {}: this build has no CUDA backend; use --device cpu", *device);
    fail<UsageError>("--device: \"{}\" is unknown, expected auto or cpu", *device);
  }
  if (*kv_cache_dtype == "fp8") fail<UsageError>("--kv-cache-dtype fp8: not in this build; use auto");
  if (*kv_cache_dtype == "bf16" && *compute == "f32") {
    fail<UsageError>("--kv-cache-dtype bf16: with --compute f32 the KV cache is float32; use auto");
  }
  if (*state_dtype == "bf16") fail<UsageError>("--state-dtype bf16: not in this build; use f32");
  if (*enable_prefix_caching) fail<UsageError>("--enable-prefix-caching: not in this build");
  if (*speculative_tokens > 0)
    fail<UsageError>("--speculative-tokens {}: not in this build; use 0", *speculative_tokens);
  if (*gpu_layers != 0) fail<UsageError>("--n-gpu-layers {}: this build has no GPU backend; use 0", *gpu_layers);
}

void ChatFlags::refuse_unsupported() const {
  if (image.given()) fail<UsageError>("--image: pictures are not in this build");
  if (video.given()) fail<UsageError>("--video: videos are not in this build");
}

}  // namespace sluice
