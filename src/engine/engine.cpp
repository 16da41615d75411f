#include "engine/engine.h"

#include <utility>

#include <fmt/format.h>

#include "engine/loop.h"

namespace sluice {

Engine::Engine(std::unique_ptr<Ops> ops, std::unique_ptr<Model> model, const EngineOptions& options)
    : loop_(std::make_unique<Loop>(std::move(ops), std::move(model), options)) {}

Engine::~Engine() = default;

RequestId Engine::submit(Request request) { return loop_->submit(std::move(request)); }

void Engine::cancel(RequestId request) { loop_->cancel(request); }

EngineStats Engine::stats() const { return loop_->stats(); }

bool Engine::failed() const { return !failure().empty(); }

std::string Engine::failure() const { return loop_->failure(); }

void StepSizes::add(std::uint64_t rows_of_step) {
  rows += rows_of_step;
  for (std::size_t i = 0; i < bounds.size(); ++i) up_to[i] += rows_of_step <= bounds[i] ? 1 : 0;
  ++up_to.back();
}

const ModelInfo& Engine::model_info() const { return loop_->model->info(); }

std::int64_t Engine::max_model_len() const { return loop_->plan.max_model_len; }

std::vector<std::string> Engine::describe() const {
  std::vector<std::string> lines = loop_->ops->describe();
  for (std::string& line : loop_->plan.describe()) lines.push_back(std::move(line));
  lines.push_back(fmt::format("steps        up to {} tokens", loop_->max_batched_tokens));
  return lines;
}

}  // namespace sluice
