// The header parser must refuse or accept any bytes without a fault; tensors that it accepts must lie inside the file,
// and every value of the metadata must be readable.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "weights/gguf_header.h"

namespace {

template <class Read>
void read(Read&& look_up) {
  try {
    look_up();
  } catch (const sluice::LoadError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    const sluice::GgufHeader header = sluice::parse_gguf_header(bytes, size, "fuzz");
    for (const sluice::FileTensor& entry : header.tensors) {
      if (entry.begin > entry.end || entry.end > size) std::abort();
      if (entry.end - entry.begin != entry.tensor.byte_size()) std::abort();
    }
    for (const auto& entry : header.metadata.values()) {
      const auto& key = entry.first;
      read([&] { header.metadata.integer(key); });
      read([&] { header.metadata.number(key); });
      read([&] { header.metadata.boolean(key); });
      read([&] { header.metadata.string(key); });
      read([&] { header.metadata.integers(key); });
      read([&] { header.metadata.strings(key); });
    }
  } catch (const sluice::LoadError&) {
  }
  return 0;
}
