#include "cpu/backend.h"

#include <cstring>
#include <fstream>

#include "base/processors.h"
#include "cpu/cpu_ops.h"
#include "cpu/linear/kernel.h"

namespace sluice {

namespace {

std::string processor_name() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "processor";
}

}  // namespace

std::unique_ptr<Ops> make_cpu_backend(const CpuOptions& options) { return std::make_unique<CpuOps>(options); }

CpuOps::CpuOps(const CpuOptions& options)
    : compute_(options.compute),
      instruction_set_(choose_instruction_set(options.instruction_set)),
      pool_(options.threads > 0 ? options.threads : usable_processors()),
      placer_(pool_) {}

std::vector<std::string> CpuOps::describe() const {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("device: {}, {} thread{}, instruction set {}{}", processor_name(), pool_.size(),
                              pool_.size() == 1 ? "" : "s", instruction_set_.name,
                              has_amx_bf16() ? " (the machine has amx-bf16 too)" : ""));
  lines.push_back(fmt::format("compute: {}", compute_ == Compute::bf16 ? "bf16" : "float32"));
  for (const Layout layout :
       {Layout::bf16_panels, Layout::f16_panels, Layout::f32_panels, Layout::coded_panels, Layout::block_rows}) {
    const LinearKernel& kernel = choose_linear_kernel(layout, instruction_set_, compute_);
    lines.push_back(fmt::format("{}: {}, tiles of {} rows x {} panels", name_of(layout), kernel.name,
                                kernel.tiles->rows, kernel.tiles->panels));
  }
  return lines;
}

std::uint64_t CpuOps::free_memory() const { return available_memory(); }

Tensor CpuOps::allocate(DType dtype, Shape shape) {
  return Tensor(arena_.allocate(static_cast<std::size_t>(shape.elements()) * size_of(dtype)), dtype, shape);
}

void CpuOps::to_device(const Tensor& destination, const void* host) {
  CHECK(destination.is_contiguous(), "{}", destination.shape().to_string());
  if (!destination.empty()) std::memcpy(destination.data(), host, destination.bytes());
}

void CpuOps::to_host(void* host, const Tensor& source) {
  CHECK(source.is_contiguous(), "{}", source.shape().to_string());
  if (!source.empty()) std::memcpy(host, source.data(), source.bytes());
}

void CpuOps::fill_bytes(const Tensor& tensor, std::uint8_t value) {
  CHECK(tensor.is_contiguous(), "{}", tensor.shape().to_string());
  if (!tensor.empty()) std::memset(tensor.data(), value, tensor.bytes());
}

}  // namespace sluice
