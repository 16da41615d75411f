#include "cpu/linear/panels.h"

#include <algorithm>

namespace sluice {

std::string_view name_of(Layout layout) {
  switch (layout) {
    case Layout::bf16_panels: return "bf16 panels";
    case Layout::f16_panels: return "f16 panels";
    case Layout::f32_panels: return "f32 panels";
    case Layout::coded_panels: return "coded panels";
    case Layout::block_rows: return "block rows";
  }
  check_failed(__FILE__, __LINE__, "a layout", "");
}

CodedParts coded_parts(const Coding& coding, std::int64_t in) {
  const auto columns = static_cast<std::size_t>((in + 3) / 4 * 4);
  const auto groups = static_cast<std::size_t>(coding.groups(in));
  const auto supers = static_cast<std::size_t>(coding.super_group > 0 ? coding.super_groups(in) : 0);
  const bool bytes = coding.codes == CodeKind::int8 || coding.codes == CodeKind::f8_e4m3;
  CodedParts parts{};
  parts.high_codes = panel_rows * (bytes ? columns : columns / 2);
  parts.scales = parts.high_codes + panel_rows * (coding.codes == CodeKind::six_bit ? columns / 4 : 0);
  parts.supers = parts.scales + panel_rows * groups * size_of(coding.scales);
  parts.offsets = parts.supers + panel_rows * supers * size_of(coding.supers);
  parts.super_offsets = parts.offsets + panel_rows * groups * size_of(coding.offsets);
  parts.end = parts.super_offsets + panel_rows * supers * size_of(coding.super_offsets);
  return parts;
}

std::size_t Panels::panel_bytes() const {
  const auto numbers = static_cast<std::size_t>(columns() * panel_rows);
  switch (layout) {
    case Layout::bf16_panels:
    case Layout::f16_panels: return 2 * numbers;
    case Layout::f32_panels: return 4 * numbers;
    case Layout::coded_panels: return coded_parts(coding, in).end;
    case Layout::block_rows:
      return static_cast<std::size_t>(panel_rows * (in / block_type->values) * block_type->bytes);
  }
  check_failed(__FILE__, __LINE__, "a layout", "");
}

namespace {

std::size_t bytes_of(const std::vector<Segment>& segments) {
  std::size_t bytes = 0;
  for (const Segment& segment : segments) {
    bytes += segment.panels.bytes();
    if (segment.order != nullptr) bytes += static_cast<std::size_t>(segment.panels.in) * sizeof(std::int32_t);
  }
  return bytes;
}

std::string layouts_of(const std::vector<Segment>& segments) {
  std::vector<std::string_view> names;
  for (const Segment& segment : segments) {
    const std::string_view name = name_of(segment.panels.layout);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

}  // namespace

std::size_t CpuWeight::bytes() const { return bytes_of(segments_); }
std::string CpuWeight::layout() const { return layouts_of(segments_); }
std::size_t CpuExpertWeights::bytes() const { return static_cast<std::size_t>(experts()) * bytes_of(segments_); }
std::string CpuExpertWeights::layout() const { return layouts_of(segments_); }

const CpuWeight& cpu_weight(const Weight& weight) {
  const auto* own = dynamic_cast<const CpuWeight*>(&weight);
  CHECK(own != nullptr, "a weight of another backend: {}", weight.layout());
  return *own;
}

const CpuExpertWeights& cpu_weights(const ExpertWeights& weights) {
  const auto* own = dynamic_cast<const CpuExpertWeights*>(&weights);
  CHECK(own != nullptr, "weights of another backend: {}", weights.layout());
  return *own;
}

}  // namespace sluice
