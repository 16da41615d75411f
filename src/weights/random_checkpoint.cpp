#include "weights/random_checkpoint.h"

#include <cstring>
#include <functional>

#include "base/check.h"
#include "tensor/dtype.h"

namespace sluice {

namespace {

constexpr std::uint16_t sign_bit = 0x8000, lowest_exponent_bit = 0x0080, mantissa_bits = 0x007f;

std::uint64_t four_times(std::uint16_t bits) { return bits * std::uint64_t{0x0001000100010001}; }

/// Fills with xorshift64 (Marsaglia, 2003), four values at a time.
void fill(std::byte* values, std::size_t bytes, std::uint64_t seed, std::uint64_t fixed, std::uint64_t random) {
  std::uint64_t state = seed | 1;
  const auto draw = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state & random) | fixed;
  };
  std::size_t done = 0;
  for (; done + sizeof state <= bytes; done += sizeof state) {
    const std::uint64_t word = draw();
    std::memcpy(values + done, &word, sizeof word);
  }
  const std::uint64_t word = draw();
  std::memcpy(values + done, &word, bytes - done);
}

}  // namespace

RandomCheckpoint::RandomCheckpoint(std::vector<RandomTensor> tensors, std::string description)
    : description_(std::move(description)) {
  for (RandomTensor& tensor : tensors) {
    Entry& entry = entries_[tensor.name];
    CHECK(entry.stored.name.empty(), "{} twice", tensor.name);
    entry.stored = {tensor.name, DType::bf16, std::move(tensor.shape), description_};
    entry.random_bits = mantissa_bits | lowest_exponent_bit;
    // One bit of the exponent is drawn, so the fixed part has it clear: values from 1 to 4 times the magnitude.
    entry.fixed_bits = static_cast<std::uint16_t>(float_to_bf16(tensor.magnitude) & ~entry.random_bits & ~sign_bit);
    if (tensor.sign == RandomSign::both) entry.random_bits |= sign_bit;
    if (tensor.sign == RandomSign::negative) entry.fixed_bits |= sign_bit;
    total_bytes_ += entry.stored.byte_size();
  }
}

const StoredTensor* RandomCheckpoint::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second.stored;
}

std::vector<std::string> RandomCheckpoint::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

std::span<const std::byte> RandomCheckpoint::bytes(const StoredTensor& tensor) const {
  const std::lock_guard lock(mutex_);
  const Entry& entry = entries_.find(tensor.name)->second;
  const std::size_t size = entry.stored.byte_size();
  if (entry.values.data() == nullptr && size > 0) {
    entry.values = host_buffer(size);
    fill(static_cast<std::byte*>(entry.values.data()), size, std::hash<std::string>{}(tensor.name),
         four_times(entry.fixed_bits), four_times(entry.random_bits));
  }
  return {static_cast<const std::byte*>(entry.values.data()), size};
}

void RandomCheckpoint::release(const StoredTensor& tensor) const {
  const std::lock_guard lock(mutex_);
  entries_.find(tensor.name)->second.values = Buffer();
}

}  // namespace sluice
