#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "apps/quantize_plan.h"
#include "base/json.h"
#include "weights/tensor_writer.h"

namespace sluice {

/// A folder that appears under its name only when it is whole: until commit() it is NAME.partial, which the destructor
/// removes.
class OutputFolder {
 public:
  /// Throws Error when it cannot be created.
  explicit OutputFolder(std::filesystem::path path);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Where to write until then.
  const std::filesystem::path& partial() const { return partial_; }
  /// In the place of what had the name. Throws Error.
  void commit();

 private:
  std::filesystem::path path_, partial_;
  bool committed_ = false;
};

/// Throws UsageError for an OUT that cannot be written: it is there already (without `force`), is the source, has the
/// wrong ending, or is a folder with more in it than files.
void check_output(const std::filesystem::path& out, const std::filesystem::path& source, const QuantizeFormat& format,
                  bool force);

/// Writes the files that stand beside the weights.
void write_folder_texts(const std::filesystem::path& folder, const Json& config,
                        const std::map<std::string, std::string>& texts);

}  // namespace sluice
