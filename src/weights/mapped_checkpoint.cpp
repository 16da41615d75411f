#include "weights/mapped_checkpoint.h"

#include "base/check.h"
#include "base/error.h"

namespace sluice {

const StoredTensor* MappedCheckpoint::find(std::string_view name) const {
  const auto found = records_.find(name);
  return found == records_.end() ? nullptr : &found->second.tensor;
}

std::vector<std::string> MappedCheckpoint::names() const {
  std::vector<std::string> all;
  for (const auto& [name, record] : records_) all.push_back(name);
  return all;
}

const MappedCheckpoint::Record& MappedCheckpoint::record_of(const StoredTensor& tensor) const {
  const auto found = records_.find(tensor.name);
  CHECK(found != records_.end(), "{} is no tensor of {}", tensor.name, description_);
  return found->second;
}

std::span<const std::byte> MappedCheckpoint::bytes(const StoredTensor& tensor) const {
  const Record& record = record_of(tensor);
  return record.file->bytes().subspan(record.begin, record.tensor.byte_size());
}

void MappedCheckpoint::release(const StoredTensor& tensor) const { record_of(tensor).file->release(bytes(tensor)); }

void MappedCheckpoint::add_file(std::unique_ptr<MappedFile> file, std::vector<FileTensor> tensors) {
  for (FileTensor& entry : tensors) {
    total_ += entry.tensor.byte_size();
    const std::string name = entry.tensor.name;
    const auto [position, added] = records_.emplace(name, Record{std::move(entry.tensor), file.get(), entry.begin});
    if (!added) {
      fail<LoadError>("tensor \"{}\" is in {} and in {}", name, position->second.tensor.source, file->path().string());
    }
  }
  files_.push_back(std::move(file));
}

}  // namespace sluice
