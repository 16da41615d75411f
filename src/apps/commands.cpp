#include "apps/commands.h"

#include "apps/command_options.h"
#include "apps/serve_options.h"

namespace sluice {

namespace {

template <class Options>
std::vector<OptionEntry> entries_of() {
  Options options;
  OptionList list;
  options.list(list);
  std::vector<OptionEntry> entries = list.entries();
  for (OptionEntry& entry : entries) {
    entry.origin = nullptr;  // what it points to ends here
    entry.set = nullptr;
  }
  return entries;
}

const Command all_commands[] = {
    {{"run", "[MODEL] [flags]", "Chat in the terminal; with -p TEXT or piped input, print one answer and exit.",
      "sluice run -p \"What is the capital of Peru?\""},
     run_command,
     entries_of<RunOptions>},
    {{"generate", "[MODEL] (-p TEXT | --messages FILE | --ids 1,2,3) [flags]",
      "Complete a raw text, a chat or token ids.", "sluice generate --messages chat.json --temperature 0 --json"},
     generate_command,
     entries_of<GenerateOptions>},
    {{"serve", "[MODEL | --shape NAME] [flags]",
      "Serve the model over HTTP: OpenAI's and Anthropic's APIs, and a chat page.",
      "sluice serve --port 8000\n  sluice serve Qwen/Qwen3.5-0.8B --host 0.0.0.0 --api-key SECRET"},
     serve_command,
     entries_of<ServeOptions>},
    {{"bench", "[MODEL | --shape NAME | --serve URL] [flags]",
      "Measure prefill and decode against the machine's own limits, or a server under load.",
      "sluice bench --shape qwen3.5-0.8b --pp 512 --tg 64\n"
      "  sluice bench --serve http://localhost:8000 --concurrency 1,16 --requests 64 --goodput ttft:200,tpot:50"},
     bench_command,
     entries_of<BenchOptions>},
    {{"inspect", "[MODEL] [flags]", "Show the config, the tensors and the memory plan of a checkpoint.",
      "sluice inspect Qwen/Qwen3.5-0.8B --max-model-len 32768"},
     inspect_command,
     entries_of<InspectOptions>},
    {{"quantize", "IN OUT --format FORMAT [flags]", "Write a checkpoint with its big matrices in fewer bits.",
      "sluice quantize Qwen/Qwen3.5-0.8B qwen3.5-0.8b.gguf --format q4_k_m\n"
      "  sluice quantize Qwen/Qwen3.5-27B qwen3.5-27b-fp8 --format fp8 --keep layers.0.*=bf16"},
     quantize_command,
     entries_of<QuantizeOptions>},
    {{"logits", "[MODEL] (--ids 1,2,3 | --input FILE) --out FILE [flags]", "Write every row of logits to a file.",
      "sluice logits --ids 1652,314,198 --compute f32 --out logits.safetensors"},
     logits_command,
     entries_of<LogitsOptions>},
    {{"tokenize", "[MODEL] (TEXT | --file F) [flags]", "Turn text into token ids.", "sluice tokenize \"Hello, world\""},
     tokenize_command,
     entries_of<TokenizeOptions>},
    {{"detokenize", "[MODEL] (IDS | --file F) [flags]", "Turn token ids into text.", "sluice detokenize 842,988,273"},
     detokenize_command,
     entries_of<TokenizeOptions>},
    {{"template", "[MODEL] --messages FILE [flags]", "Show the prompt that the chat template makes of a chat.",
      "sluice template --messages chat.json --thinking off"},
     template_command,
     entries_of<TemplateOptionsFlags>},
    {{"list", "[flags]", "List the models of the Hugging Face cache.", "sluice list"},
     list_command,
     entries_of<ListOptions>},
    {{"version", "[flags]", "Show version, build options and devices.", "sluice version --json"},
     version_command,
     entries_of<VersionOptions>},
    {{"completion", "bash|zsh|fish", "Print a completion script for a shell.", "source <(sluice completion bash)"},
     completion_command,
     entries_of<CompletionOptions>},
};

}  // namespace

std::span<const Command> commands() { return all_commands; }

}  // namespace sluice
