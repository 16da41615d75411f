#include "apps/quantize_report.h"

#include <algorithm>
#include <map>

#include "apps/tensor_groups.h"

namespace sluice {

namespace {

/// All groups as one.
QuantizeReport::Group total_of(const QuantizeReport& report) {
  QuantizeReport::Group total;
  total.name = "all";
  for (const QuantizeReport::Group& group : report.groups) {
    total.count += group.count;
    total.bytes_before += group.bytes_before;
    total.bytes_after += group.bytes_after;
    total.error.add(group.error);
  }
  return total;
}

std::string format_of(const PlannedItem& item) {
  if (item.matrix != nullptr) return std::string(item.encoder->name);
  if (!item.as_stored) return "f32";
  const DType dtype = item.other->stored->dtype;
  return std::string(is_plain_float(dtype) ? plain_encoder(dtype).name : name_of(dtype));
}

std::string line_of(const QuantizeReport::Group& group, std::size_t name_width) {
  std::string line = fmt::format("  {:<{}}  {:>5}  {:<9} {:>11} -> {:>11}", group.name, name_width, group.count,
                                 group.format, gibibytes(group.bytes_before), gibibytes(group.bytes_after));
  if (group.error.squares > 0.0)
    line += fmt::format("  {:>8.5f}  {:>9.3g}", group.error.relative(), group.error.largest);
  return line + "\n";
}

}  // namespace

std::vector<QuantizeReport::Group> group_items(const QuantizePlan& plan, const std::vector<EncodingError>& errors) {
  std::map<std::pair<std::string, std::string>, QuantizeReport::Group> groups;
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const PlannedItem& item = plan.items[i];
    const std::string name = without_numbers(item.matrix != nullptr ? item.matrix->name : item.other->name);
    const std::string format = format_of(item);
    QuantizeReport::Group& group = groups[{name, format}];
    group.name = name;
    group.format = format;
    ++group.count;
    group.bytes_before += stored_bytes(item);
    group.bytes_after += written_bytes(item);
    group.error.add(errors[i]);
  }
  std::vector<QuantizeReport::Group> list;
  for (const auto& [key, group] : groups) list.push_back(group);
  return list;
}

Json report_json(const QuantizeReport& report) {
  Json tensors = Json::array();
  const auto add_numbers = [](Json& json, const QuantizeReport::Group& group) {
    json["count"] = group.count;
    json["bytes_before"] = group.bytes_before;
    json["bytes_after"] = group.bytes_after;
    if (group.error.squares == 0.0) return;
    json["relative_error"] = group.error.relative();
    json["max_error"] = group.error.largest;
  };
  for (const QuantizeReport::Group& group : report.groups) {
    Json& entry = tensors.emplace_back(Json{{"name", group.name}, {"format", group.format}});
    add_numbers(entry, group);
  }
  Json json = {{"source", report.source}, {"out", report.out},     {"format", report.format},
               {"tensors", tensors},      {"notes", report.notes}, {"total", Json::object()}};
  add_numbers(json["total"], total_of(report));
  if (report.perplexity_before && report.perplexity_after) {
    json["perplexity"] = {{"tokens", report.perplexity_before->tokens},
                          {"before", report.perplexity_before->value},
                          {"after", report.perplexity_after->value}};
  }
  return json;
}

std::string report_text(const QuantizeReport& report) {
  std::size_t name_width = 6;
  for (const QuantizeReport::Group& group : report.groups) name_width = std::max(name_width, group.name.size());
  std::string text =
      fmt::format("{} -> {} ({})\n\n  {:<{}}  {:>5}  {:<9} {:>11}    {:>11}  {:>8}  {:>9}\n", report.source, report.out,
                  report.format, "tensor", name_width, "count", "format", "before", "after", "rel. L2", "max");
  for (const QuantizeReport::Group& group : report.groups) text += line_of(group, name_width);
  text += line_of(total_of(report), name_width);
  for (const std::string& note : report.notes) text += fmt::format("  note: {}\n", note);
  if (report.perplexity_before && report.perplexity_after) {
    const double before = report.perplexity_before->value, after = report.perplexity_after->value;
    text += fmt::format("\nPerplexity of {} tokens: {:.4f} -> {:.4f} ({:+.2f}%)\n", report.perplexity_before->tokens,
                        before, after, 100.0 * (after / before - 1.0));
  }
  return text;
}

}  // namespace sluice
