#pragma once
#include <span>

#include "base/thread_pool.h"
#include "cpu/linear/panels.h"

namespace sluice {

/// The panels that hold these stacked parts without loss, in the narrowest type.
Panels panels_for(std::span<const SourceMatrix> parts);

/// Writes the stacked parts as panels.bytes() bytes to `data`. `panels` may be wider than panels_for(parts) asks.
void repack(ThreadPool& pool, std::span<const SourceMatrix> parts, const Panels& panels, std::byte* data);

}  // namespace sluice
