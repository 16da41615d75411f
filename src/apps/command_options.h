#pragma once
#include "apps/options.h"

namespace sluice {

struct ModelOptions {
  Text model{"MODEL", "MODEL",
             "a directory, a GGUF file, or ORG/NAME[@revision] in the Hugging Face cache; the bundled tiny model when "
             "absent"};
  Text model_flag{"--model -m", "MODEL", "the same as MODEL, as other programs spell it"};
  Text mmproj{"--mmproj -mm", "FILE",
              "picture tower of a GGUF model, or none; absent: mmproj*.gguf beside it (BF16, else F16, of several)"};

  void list(OptionList& options) {
    options.group("Model");
    options.add(model, model_flag, mmproj);
  }
  const std::string& name() const { return model->empty() ? *model_flag : *model; }
};

/// Where and how the model runs. Flags of features that this build lacks are there to be refused by name.
struct EngineFlags {
  Text device{"--device", "DEVICE", "auto or cpu (cuda[:N] is not in this build)", "auto"};
  Text compute{"--compute", "auto|f32|bf16", "numbers that products and the KV cache use; f32 is the reference",
               "auto"};
  Integer threads{"--threads -t", "N", "threads of the CPU backend; 0: all processors of this process", 0, 0, 4096};
  Integer max_model_len{"--max-model-len -c --ctx-size",
                        "TOKENS",
                        "longest sequence, prompt included; 0: the model's context, or what fits in memory",
                        0,
                        0,
                        1e9};
  Integer max_num_seqs{
      "--max-num-seqs -np --parallel", "N", "sequences that run at once; 0: as many as fit", 0, 0, 65536};
  Integer max_num_batched_tokens{
      "--max-num-batched-tokens --batch-size", "N", "tokens of one step of the engine; 0: 512", 0, 0, 1e6};
  Number memory_utilization{"--gpu-memory-utilization",
                            "SHARE",
                            "share of the free memory (after the weights) that caches may take, also on the CPU",
                            0.9,
                            0.01,
                            1.0};
  Text kv_cache_dtype{"--kv-cache-dtype", "auto|bf16|fp8",
                      "type of the KV cache; auto follows --compute (fp8 is not in this build)", "auto"};
  Text state_dtype{"--state-dtype", "f32|bf16", "type of the delta nets' state (bf16 is not in this build)", "f32"};
  Flag enable_prefix_caching{"--enable-prefix-caching", "",
                             "reuse the caches of equal prompt beginnings (not in this build)"};
  Flag no_prefix_caching{"--no-enable-prefix-caching", "", "the default in this build"};
  Integer speculative_tokens{
      "--speculative-tokens", "K", "tokens drafted a step by the MTP head (only 0 in this build)", 0, 0, 64};
  Integer tensor_parallel_size{"--tensor-parallel-size -tp",
                               "N",
                               "devices that share each matrix (only 1 in this build; inspect plans for 2, 4 and 8)",
                               1,
                               1,
                               1024};
  Integer gpu_layers{"--n-gpu-layers -ngl", "N", "layers on a GPU (only 0 in this build)", 0, -1, 1e6};
  Integer seed{"--seed -s", "N", "of sampling; absent: another one each time", 0, 0, 9.2e18};
  Flag verbose{"--verbose -v", "", "print the device, the memory plan and the kernels chosen"};

  void list(OptionList& options) {
    options.group("Engine");
    options.add(device, compute, threads, max_model_len, max_num_seqs, max_num_batched_tokens, memory_utilization,
                kv_cache_dtype, state_dtype, enable_prefix_caching, no_prefix_caching, speculative_tokens,
                tensor_parallel_size, gpu_layers, seed, verbose);
  }
  /// Throws UsageError that names a flag whose feature is not in this build.
  void refuse_unsupported() const;
  /// The same but for --tensor-parallel-size, which `inspect` plans for.
  void refuse_unsupported_on_one_device() const;
};

/// How tokens are chosen. What is not given follows generation_config.json, then the built-in default.
struct SamplingFlags {
  Integer max_tokens{
      "--max-tokens -n --predict --n-predict", "N", "most tokens of a reply; 0: up to the context", 0, 0, 1e9};
  Number temperature{"--temperature --temp", "T", "0 takes the best token each time", 1.0, 0.0, 100.0};
  Number top_p{"--top-p", "P", "the smallest set of tokens with this probability; 1: all", 1.0, 0.0, 1.0};
  Integer top_k{"--top-k", "K", "the K best tokens; 0: all", 0, 0, 1e9};
  Number min_p{"--min-p", "P", "tokens with at least this share of the best one's probability; 0: all", 0.0, 0.0, 1.0};
  Number repetition_penalty{
      "--repetition-penalty --repeat-penalty", "F", "above 1 discourages tokens of prompt and reply", 1.0, 0.01, 100.0};
  Number presence_penalty{"--presence-penalty", "F", "subtracted once for tokens of the reply", 0.0, -100.0, 100.0};
  Number frequency_penalty{
      "--frequency-penalty", "F", "subtracted for each time a token was in the reply", 0.0, -100.0, 100.0};
  Texts stop{"--stop", "TEXT", "ends the reply where this text comes up; may be repeated"};
  Flag ignore_eos{"--ignore-eos", "", "go on past the model's own stop tokens"};

  void list(OptionList& options) {
    options.group("Sampling");
    options.add(max_tokens, temperature, top_p, top_k, min_p, repetition_penalty, presence_penalty, frequency_penalty,
                stop, ignore_eos);
  }
};

struct ChatFlags {
  Text thinking{"--thinking", "on|off", "whether the model thinks first; absent: as its template has it", ""};
  Text chat_template{"--chat-template", "FILE", "a Jinja template instead of the checkpoint's own"};
  Texts image{"--image", "FILE", "a picture (not in this build)"};
  Texts video{"--video", "FILE", "a video (not in this build)"};

  void list(OptionList& options) {
    options.group("Chat");
    options.add(thinking, chat_template, image, video);
  }
  void refuse_unsupported() const;
};

struct RunOptions {
  ModelOptions model;
  Text prompt{"--prompt -p", "TEXT", "answer this and exit; without it, piped input is the prompt"};
  Text system{"--system -sys", "TEXT", "the system message"};
  ChatFlags chat;
  SamplingFlags sampling;
  EngineFlags engine;

  void list(OptionList& options) {
    model.list(options);
    options.group("Prompt");
    options.add(prompt, system);
    chat.list(options);
    sampling.list(options);
    engine.list(options);
  }
};

struct GenerateOptions {
  ModelOptions model;
  Text prompt{"--prompt -p", "TEXT", "raw text to go on from"};
  Text messages{"--messages", "FILE.json", "a chat: a list of {role, content}, as OpenAI's"};
  Text ids{"--ids", "1,2,3", "token ids to go on from"};
  Text tools{"--tools", "FILE.json", "tools of the chat, as OpenAI's"};
  Flag json{"--json", "", "print one JSON object when done"};
  ChatFlags chat;
  SamplingFlags sampling;
  EngineFlags engine;

  void list(OptionList& options) {
    model.list(options);
    options.group("Prompt");
    options.add(prompt, messages, ids, tools);
    options.group("Output");
    options.add(json);
    chat.list(options);
    sampling.list(options);
    engine.list(options);
  }
};

struct LogitsOptions {
  ModelOptions model;
  Text ids{"--ids", "1,2,3", "token ids"};
  Text input{"--input", "FILE.safetensors", "a file that holds the ids"};
  Text key{"--key", "NAME", "name of the int64 or int32 tensor in --input", "ids"};
  Text image_patches{"--image-patches", "FILE", "patches of pictures (not in this build)"};
  Text out{"--out -o", "FILE.safetensors", "where to write `logits` [tokens, vocabulary] float32"};
  Flag mtp{"--mtp", "", "also `mtp_logits` [tokens - 1, vocabulary]: the draft head's"};
  Integer chunk{"--chunk", "N", "tokens of one pass", 512, 1, 1e6};
  EngineFlags engine;

  void list(OptionList& options) {
    model.list(options);
    options.group("Input and output");
    options.add(ids, input, key, image_patches, out, mtp, chunk);
    engine.list(options);
  }
};

struct TokenizeOptions {
  Text first{"MODEL", "MODEL", "a model; may be left out before the text"};
  Text second{"TEXT", "TEXT", "what to convert; for detokenize, ids separated by commas or blanks"};
  Text model_flag{"--model -m", "MODEL", "the model, when the one argument is the text"};
  Text file{"--file -f", "FILE", "convert the whole content of a file; - is standard input"};
  Flag no_special{"--no-special", "", "take names of special tokens as plain text; for detokenize, leave them out"};
  Flag json{"--json", "", "print a JSON object"};

  void list(OptionList& options) {
    options.group("Input and output");
    options.add(first, second, model_flag, file, no_special, json);
  }
};

struct TemplateOptionsFlags {
  ModelOptions model;
  Text messages{"--messages", "FILE.json", "a chat: a list of {role, content}, as OpenAI's"};
  Text tools{"--tools", "FILE.json", "tools of the chat, as OpenAI's"};
  Text thinking{"--thinking", "on|off", "whether the model shall think; absent: as its template has it", ""};
  Text chat_template{"--chat-template", "FILE", "a Jinja template instead of the checkpoint's own"};
  Flag no_generation_prompt{"--no-generation-prompt", "", "do not open the assistant's turn"};
  Flag json{"--json", "", "print a JSON object with the prompt and its token ids"};

  void list(OptionList& options) {
    model.list(options);
    options.group("Chat");
    options.add(messages, tools, thinking, chat_template, no_generation_prompt, json);
  }
};

struct InspectOptions {
  ModelOptions model;
  Text compare{"--compare", "cpu,cuda", "name the first operation that differs (not in this build: one backend)"};
  Flag json{"--json", "", "print a JSON object"};
  EngineFlags engine;

  void list(OptionList& options) {
    model.list(options);
    options.group("Output");
    options.add(compare, json);
    engine.list(options);
  }
};

struct QuantizeOptions {
  Text in{"IN", "MODEL", "the model: a directory, a GGUF file, or ORG/NAME[@revision] in the Hugging Face cache"};
  Text out{"OUT", "OUT", "a folder for fp8, nvfp4 and int4; a file whose name ends in .gguf for the others"};
  Text format{"--format", "q8_0|q4_k_m|q6_k|fp8|nvfp4|int4", "the form of the big matrices"};
  Texts keep{
      "--keep", "NAME=FORMAT",
      "another form for matrices whose name, or its end after a dot, is NAME (with * and ?); may be repeated, and "
      "the last one counts. Folders: bf16, f16, f32, fp8, nvfp4, int4; GGUF: bf16, f16, f32, q8_0, q6_k, q4_k, q4_0"};
  Text text{"--text", "FILE", "also the perplexity of this text under the model and the result"};
  Flag force{"--force", "", "replace OUT if it is there"};
  Flag json{"--json", "", "print a JSON object"};
  EngineFlags engine;

  void list(OptionList& options) {
    options.group("Quantization");
    options.add(in, out, format, keep, text, force);
    options.group("Output");
    options.add(json);
    engine.list(options);
  }
};

/// How `bench --serve` asks a server.
struct ServeLoadFlags {
  Text url{"--serve", "URL", "measure this server, any that speaks OpenAI's API; MODEL is then the name it serves"};
  Integers concurrency{"--concurrency --max-concurrency", "N,...", "most requests at once", {1}, 1, 65536};
  Integer requests{
      "--requests --num-prompts", "M", "requests of each case; 0: four times the concurrency, at least 16", 0, 0, 1e8};
  Integer input_tokens{"--input-tokens --random-input-len", "N", "tokens of a prompt", 128, 1, 1e7};
  Integer output_tokens{"--output-tokens --random-output-len", "N", "tokens of a reply", 128, 1, 1e7};
  Text endpoint{"--endpoint", "completions|chat", "which API", "completions"};
  Flag prompt_ids{"--prompt-ids", "", "prompts are random token ids instead of words"};
  Flag no_stream{"--no-stream", "", "ask for whole replies: only throughput and whole times are known then"};
  Text request_rate{"--request-rate", "R", "Poisson arrivals, R a second; inf: the next when there is room", "inf"};
  Text goodput{"--goodput", "ttft:MS,tpot:MS,e2el:MS", "count requests that meet these bounds in milliseconds", ""};
  Text api_key{"--api-key", "KEY", "sent as a bearer token"};
  Flag insecure{"--insecure", "", "do not check the server's certificate"};
  Number timeout{"--request-timeout", "SECONDS", "a request that takes longer has failed", 600, 0.1, 1e6};

  void list(OptionList& options) {
    options.group("Load on a server");
    options.add(url, concurrency, requests, input_tokens, output_tokens, endpoint, prompt_ids, no_stream, request_rate,
                goodput, api_key, insecure, timeout);
  }
};

struct BenchOptions {
  ModelOptions model;
  Text shape{"--shape", "NAME",
             "random weights of a published shape: qwen3.5-0.8b, -2b, -4b, -9b, -27b, -35b-a3b, -122b-a10b"};
  Text format{"--format", "NAME", "format of the random weights (only bf16 in this build)", "bf16"};
  Integers pp{"--pp --n-prompt", "N,...", "tokens of the prompt; 0 leaves prefill out", {512}, 0, 1e7};
  Integers tg{"--tg --n-gen", "N,...", "tokens to generate; 0 leaves decode out", {128}, 0, 1e7};
  Integers depth{"--depth", "N,...", "tokens in the caches before decode starts", {0}, 0, 1e7};
  Integers batch{"--batch", "N,...", "sequences at once", {1}, 1, 65536};
  Integer repeat{"--repeat -r", "N", "runs of each case; the median counts", 3, 1, 1000};
  ServeLoadFlags serve;
  Flag json{"--json", "", "print a list of records"};
  Flag markdown{"--markdown", "", "print the table as Markdown"};
  EngineFlags engine;

  void list(OptionList& options) {
    model.list(options);
    options.group("What to measure");
    options.add(shape, format, pp, tg, depth, batch, repeat);
    serve.list(options);
    options.group("Output");
    options.add(json, markdown);
    engine.list(options);
  }
};

struct ListOptions {
  Flag json{"--json", "", "print a JSON list"};
  void list(OptionList& options) { options.add(json); }
};

struct VersionOptions {
  Flag json{"--json", "", "print a JSON object"};
  void list(OptionList& options) { options.add(json); }
};

struct CompletionOptions {
  Text shell{"SHELL", "bash|zsh|fish", "which shell"};
  void list(OptionList& options) { options.add(shell); }
};

}  // namespace sluice
