#include "weights/joined_checkpoint.h"

#include "base/error.h"

namespace sluice {

JoinedCheckpoint::JoinedCheckpoint(std::unique_ptr<Checkpoint> first, std::unique_ptr<Checkpoint> second)
    : first_(std::move(first)), second_(std::move(second)) {
  for (const std::string& name : second_->names()) {
    if (first_->find(name) == nullptr) continue;
    fail<LoadError>("tensor \"{}\" is in {} and in {}", name, first_->describe(), second_->describe());
  }
}

const StoredTensor* JoinedCheckpoint::find(std::string_view name) const {
  const StoredTensor* found = first_->find(name);
  return found != nullptr ? found : second_->find(name);
}

std::vector<std::string> JoinedCheckpoint::names() const {
  std::vector<std::string> all = first_->names();
  const std::vector<std::string> others = second_->names();
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

const Checkpoint& JoinedCheckpoint::owner(const StoredTensor& tensor) const {
  return first_->find(tensor.name) != nullptr ? *first_ : *second_;
}

std::string JoinedCheckpoint::describe() const {
  return fmt::format("{} and {}", first_->describe(), second_->describe());
}

}  // namespace sluice
