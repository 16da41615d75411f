#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/perplexity.h"
#include "apps/quantize_write.h"
#include "base/json.h"

namespace sluice {

/// What a run of the command did.
struct QuantizeReport {
  /// Tensors that differ only in their layers and experts.
  struct Group {
    std::string name, format;
    std::uint64_t count = 0, bytes_before = 0, bytes_after = 0;
    EncodingError error;
  };
  std::string source, out, format;
  std::vector<Group> groups;
  std::vector<std::string> notes;
  std::optional<Perplexity> perplexity_before, perplexity_after;
};

std::vector<QuantizeReport::Group> group_items(const QuantizePlan& plan, const std::vector<EncodingError>& errors);
Json report_json(const QuantizeReport& report);
std::string report_text(const QuantizeReport& report);

}  // namespace sluice
