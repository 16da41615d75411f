#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apps/quantize_source.h"
#include "weights/encode/encoder.h"
#include "weights/gguf_qwen.h"

namespace sluice {

/// What --format names.
struct QuantizeFormat {
  std::string_view name;
  bool is_gguf;
  std::string_view encoder;  // of most matrices
  std::uint32_t file_type;   // as GGUF numbers it

  const Encoder& main_encoder() const;
};
/// Throws UsageError for an unknown one.
const QuantizeFormat& find_quantize_format(const std::string& name);

/// NAME=FORMAT of --keep.
struct KeepRule {
  std::string text;     // as it was given
  std::string pattern;  // of a name, or of its end after a dot
  const Encoder* encoder = nullptr;

  bool matches(std::string_view name) const;
};
/// Throws UsageError for a text of another form, and for a form that this kind of file does not have.
std::vector<KeepRule> parse_keep_rules(const std::vector<std::string>& texts, const QuantizeFormat& format);

/// One matrix, or one other tensor, and what becomes of it.
struct PlannedItem {
  const MatrixRows* matrix = nullptr;  // null: `other`
  const Encoder* encoder = nullptr;    // of the matrix
  std::vector<EncodedPart> parts;      // of the matrix
  const OtherTensor* other = nullptr;
  bool as_stored = false;  // the bytes of `other` are copied; otherwise its numbers are written as float32
};

/// Everything that is written, in order.
struct QuantizePlan {
  std::vector<PlannedItem> items;
  std::vector<StoredTensor> tensors;  // of all items, as the file has them
  std::vector<std::string> notes;     // what did not go as the format says, for people
};

/// Plans one output. The source must outlive the plan.
class QuantizePlanner {
 public:
  /// `blocks` counts for GGUF files only.
  QuantizePlanner(const QuantizeFormat& format, const Qwen3_5Config& config, GgufQwenBlocks blocks,
                  std::vector<KeepRule> rules);
  /// Throws UsageError for a rule that matches nothing or asks for what a matrix cannot be.
  QuantizePlan plan(const QuantizeSource& source, const Checkpoint& checkpoint, const SourceView& view);

 private:
  const Encoder& choose(const MatrixRows& matrix);
  const Encoder& choose_by_default(const MatrixRows& matrix);
  const Encoder& choose_for_gguf(const MatrixRows& matrix) const;
  const Encoder& kept(const MatrixRows& matrix) const;
  std::int64_t block_of(std::string_view name) const;
  void add_matrix(QuantizePlan& plan, const MatrixRows& matrix);
  void add_other(QuantizePlan& plan, const OtherTensor& tensor, bool as_stored);
  void note(std::string_view name, std::string reason);
  void check_rules() const;

  const QuantizeFormat& format_;
  const Qwen3_5Config& config_;
  GgufQwenBlocks blocks_;
  std::vector<KeepRule> rules_;
  std::vector<bool> matched_;                                          // of the rules
  std::map<std::pair<std::string, std::string>, std::int64_t> notes_;  // reason and group to count
};

}  // namespace sluice
