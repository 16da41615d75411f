// The header parser must refuse or accept any bytes without a fault, and what it accepts must lie inside the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    for (const sluice::FileTensor& entry : sluice::parse_safetensors_header(bytes, size, "fuzz")) {
      if (entry.begin > entry.end || entry.end > size) std::abort();
      if (entry.end - entry.begin != entry.tensor.byte_size()) std::abort();
    }
  } catch (const sluice::LoadError&) {
  }
  return 0;
}
