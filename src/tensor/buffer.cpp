#include "tensor/buffer.h"

#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

#include "base/error.h"

namespace sluice {

namespace {
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t mapped_from = std::size_t{4} << 20;
constexpr std::size_t alignment = 64;

[[noreturn]] void out_of_memory(std::size_t bytes) {
  fail<DeviceError>("out of memory: {:.1f} MiB could not be allocated; use a smaller model, context or --max-num-seqs",
                    static_cast<double>(bytes) / 1048576.0);
}
}  // namespace

Tensor Buffer::view(std::size_t offset, DType dtype, Shape shape) const {
  Tensor tensor(static_cast<std::byte*>(data_) + offset, dtype, shape);
  CHECK(offset + tensor.bytes() <= bytes_, "{} + {} of {}", offset, tensor.bytes(), bytes_);
  return tensor;
}

Buffer host_buffer(std::size_t bytes) {
  if (bytes < mapped_from) {
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment + alignment;
    void* data = std::aligned_alloc(alignment, rounded);
    if (data == nullptr) out_of_memory(bytes);
    std::memset(data, 0, rounded);
    return Buffer(data, bytes, [](void* pointer) { std::free(pointer); });
  }
  const std::size_t mapped = (bytes + huge_page - 1) / huge_page * huge_page + huge_page;
  void* base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) out_of_memory(bytes);
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  void* aligned = reinterpret_cast<void*>((address + huge_page - 1) / huge_page * huge_page);
  madvise(aligned, mapped - huge_page, MADV_HUGEPAGE);
  return Buffer(aligned, bytes, [base, mapped](void*) { munmap(base, mapped); });
}

}  // namespace sluice
