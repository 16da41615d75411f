#include "apps/command_options.h"
#include "apps/commands.h"
#include "apps/interrupt.h"
#include "apps/model_files.h"
#include "apps/output.h"
#include "apps/quantize_folder.h"
#include "apps/quantize_gguf.h"
#include "apps/quantize_output.h"
#include "apps/quantize_report.h"
#include "base/error.h"
#include "base/mmap.h"
#include "base/progress.h"
#include "weights/safetensors.h"

namespace sluice {

namespace {

constexpr std::uint64_t max_file_bytes = 5'000'000'000;

/// One run of the command.
class Quantizer {
 public:
  Quantizer(const QuantizeOptions& options, const Environment& environment)
      : options_(options),
        environment_(environment),
        format_(find_quantize_format(*options.format)),
        rules_(parse_keep_rules(*options.keep, format_)),
        files_(open_model_files(*options.in, environment)),
        interrupt_({SIGINT, SIGTERM}) {
    check_output(*options.out, files_->path(), format_, *options.force);
    json_ = files_->config();
    config_ = parse_qwen3_5_config(json_);
    checkpoint_ = files_->weights();
    if (format_.is_gguf) check_fits_gguf(config_);
    const bool tiled = config_.key_heads != config_.value_heads;
    view_ = {format_.is_gguf ? Conventions{true, true, tiled} : Conventions{}, format_.is_gguf, format_.is_gguf};
  }

  QuantizeReport run() {
    const std::string text = options_.text.given() ? read_text_file(*options_.text) : "";
    if (options_.text.given()) files_->require_tokenizer();
    const QuantizeSource source = list_source(json_, *checkpoint_, view_);
    const GgufQwenBlocks blocks = gguf_blocks(config_, has_draft_head(source));
    const QuantizePlan plan = QuantizePlanner(format_, config_, blocks, rules_).plan(source, *checkpoint_, view_);
    QuantizeReport report{files_->path().string(), *options_.out, *options_.format, {}, plan.notes, {}, {}};
    report.groups = group_items(plan, format_.is_gguf ? write_gguf(plan, blocks) : write_folder(plan));
    if (!options_.text.given()) return report;
    report.perplexity_before = perplexity_of(*files_, text);
    report.perplexity_after = perplexity_of(*open_model_files(*options_.out, environment_), text);
    return report;
  }

 private:
  static bool has_draft_head(const QuantizeSource& source) {
    for (const MatrixRows& matrix : source.matrices) {
      if (matrix.name.ends_with("mtp.fc")) return true;
    }
    return false;
  }
  void stop_if_interrupted() const {
    if (interrupt_.interrupted()) throw Interrupted();
  }
  Perplexity perplexity_of(const ModelFiles& files, const std::string& text) const {
    return measure_perplexity(files, text, options_.engine, environment_, [this] { stop_if_interrupted(); });
  }

  std::vector<EncodingError> write_tensors(const QuantizePlan& plan, TensorWriter& writer) {
    ThreadPool pool(*options_.engine.threads > 0 ? static_cast<int>(*options_.engine.threads) : usable_processors());
    ProgressBar bar("quantizing", environment_.colored());
    QuantizeRun run(plan, config_, *checkpoint_, view_, pool, [&](std::uint64_t done, std::uint64_t total) {
      stop_if_interrupted();
      bar.update(done, total);
    });
    return run.write(writer);
  }

  std::vector<EncodingError> write_gguf(const QuantizePlan& plan, const GgufQwenBlocks& blocks) {
    const GgufKeys keys = gguf_keys(config_, blocks, files_->name(), format_.file_type, files_->texts());
    GgufWriter writer(*options_.out, keys, plan.tensors);
    std::vector<EncodingError> errors = write_tensors(plan, writer);
    writer.finish();
    return errors;
  }

  std::vector<EncodingError> write_folder(const QuantizePlan& plan) {
    const std::map<std::string, std::string> texts = files_->texts();
    OutputFolder folder(*options_.out);
    SafetensorsFolderWriter writer(folder.partial(), plan.tensors, max_file_bytes);
    std::vector<EncodingError> errors = write_tensors(plan, writer);
    writer.finish();
    write_folder_texts(folder.partial(), quantized_config(json_, plan), texts);
    folder.commit();
    return errors;
  }

  const QuantizeOptions& options_;
  const Environment& environment_;
  const QuantizeFormat& format_;
  std::vector<KeepRule> rules_;
  std::unique_ptr<ModelFiles> files_;
  InterruptGuard interrupt_;
  Json json_;
  Qwen3_5Config config_;
  std::unique_ptr<Checkpoint> checkpoint_;
  SourceView view_;
};

}  // namespace

int quantize_command(const CommandInfo& info, const std::vector<std::string>& arguments) {
  QuantizeOptions options;
  if (!read_into(options, info, arguments)) return 0;
  options.engine.refuse_unsupported();
  if (!options.in.given() || !options.out.given()) fail<UsageError>("quantize needs IN, a model, and OUT");
  if (!options.format.given()) fail<UsageError>("quantize needs --format; `sluice quantize --help` lists them");
  const Environment environment = read_environment();
  try {
    const QuantizeReport report = Quantizer(options, environment).run();
    write_output(*options.json ? indented_json(report_json(report)) : report_text(report));
  } catch (const Interrupted&) {
    return interrupted_exit_code;
  }
  return 0;
}

}  // namespace sluice
