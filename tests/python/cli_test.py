"""The program from outside, end to end: cli_test.py PROGRAM SOURCE_FOLDER [unittest arguments]."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import safetensors_file

PROGRAM, SOURCE = (Path(p).resolve() for p in sys.argv[1:3])
QUESTION = "What is the capital of Peru?"
ANSWER = "The capital of Peru is Lima.\n"
SCRATCH = tempfile.TemporaryDirectory(prefix="sluice_cli_")
FOLDER = Path(SCRATCH.name)
SLUICE = FOLDER / "bin" / "sluice"
TINY = SOURCE / "models" / "tiny"
GOLDEN = SOURCE / "tests" / "data" / "golden"


def setUpModule():
    """The program as it would be installed, with the bundled model where it looks for it."""
    SLUICE.parent.mkdir()
    shutil.copy(PROGRAM, SLUICE)
    (FOLDER / "models").symlink_to(SOURCE / "models")


def tearDownModule():
    SCRATCH.cleanup()


def clean_environment(**variables):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLUICE_", "HF_"))}
    return {**kept, "HOME": str(FOLDER), **variables}


def sluice(*arguments, input=None, **variables):
    """Runs the program; without input, standard input is empty."""
    return subprocess.run([SLUICE, *map(str, arguments)], input=input or "", text=True, capture_output=True, timeout=300,
                          env=clean_environment(**variables))


def chats():
    return {chat["name"]: chat for chat in json.loads((TINY / "expected" / "chats.json").read_text())}


class Case(unittest.TestCase):
    maxDiff = 4000

    def succeeds(self, *arguments, **keywords):
        done = sluice(*arguments, **keywords)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def fails(self, code, pattern, *arguments, **keywords):
        """One line on standard error that matches, nothing on standard output."""
        done = sluice(*arguments, **keywords)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertRegex(done.stderr, pattern)
        return done.stderr

    def file(self, name, content):
        path = FOLDER / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path


class Run(Case):
    def test_a_prompt_gets_its_answer_and_nothing_else_on_standard_output(self):
        done = sluice("run", "-p", QUESTION, "--temperature", 0)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, ANSWER, ""))

    def test_piped_input_is_the_prompt(self):
        self.assertEqual(self.succeeds("run", "--temperature", 0, input=QUESTION + "\n"), ANSWER)

    def test_wanted_thinking_goes_to_standard_error(self):
        done = sluice("run", "-p", QUESTION, "--temperature", 0, "--thinking", "on")
        self.assertEqual(done.stdout, ANSWER)
        self.assertIn("Peru", done.stderr)
        self.assertNotIn("\x1b", done.stderr)

    def test_empty_piped_input_is_an_error(self):
        self.fails(1, "piped input is empty", "run")

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([SLUICE, "run", "-p", QUESTION, "--temperature", "0"], stdin=subprocess.DEVNULL, stdout=full,
                                  stderr=subprocess.PIPE, text=True, env=clean_environment(), timeout=300)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "standard output: cannot be written: No space left")

    def test_a_closed_pipe_ends_it_quietly(self):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run([SLUICE, "tokenize", "hello"], stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE,
                              text=True, env=clean_environment(), timeout=300)
        os.close(writing)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr, "")


class Generate(Case):
    def generate(self, *arguments, **keywords):
        return json.loads(self.succeeds("generate", "--json", *arguments, **keywords))

    def test_json_has_exactly_the_documented_fields(self):
        result = self.generate("-p", "Hello", "--max-tokens", 3, "--temperature", 0)
        self.assertEqual(list(result), ["prompt_ids", "output_ids", "text", "reasoning", "tool_calls", "finish_reason", "usage",
                                        "timings", "speculation"])
        self.assertEqual(result["speculation"], {"steps": 0, "draft_tokens": 0, "accepted_tokens": 0})
        self.assertEqual(result["finish_reason"], "length")
        self.assertEqual((len(result["prompt_ids"]), len(result["output_ids"])), (1, 3))
        self.assertEqual(result["usage"]["total_tokens"], 4)

    def test_a_chat_is_split_and_its_stop_token_kept(self):
        chat = chats()["arith1"]
        result = self.generate("--messages", self.file("chat.json", chat["messages"]), "--temperature", 0, "--compute", "f32")
        self.assertEqual(result["prompt_ids"], chat["prompt_ids"])
        self.assertEqual(result["output_ids"], chat["output_ids"])
        reasoning, text = chat["output_text"].removesuffix("<|im_end|>").split("\n</think>\n\n")
        self.assertEqual((result["reasoning"].strip(), result["text"]), (reasoning, text))
        self.assertEqual((result["finish_reason"], result["tool_calls"]), ("stop", []))

    def test_tool_calls_have_the_shape_of_openai(self):
        chat = chats()["tool9"]
        result = self.generate("--messages", self.file("chat.json", chat["messages"]), "--tools",
                               self.file("tools.json", chat["tools"]), "--temperature", 0, "--compute", "f32")
        self.assertEqual(result["output_ids"], chat["output_ids"])
        self.assertEqual(result["finish_reason"], "tool_calls")
        (call,) = result["tool_calls"]
        self.assertEqual((set(call), call["type"], call["function"]["name"]), ({"id", "type", "function"}, "function", "add"))
        self.assertEqual(json.loads(call["function"]["arguments"]), {"a": 1965, "b": 2309})

    def test_thinking_off_leaves_no_reasoning(self):
        chat = chats()["arith2_nothink"]
        result = self.generate("--messages", self.file("chat.json", chat["messages"]), "--thinking", "off", "--temperature", 0,
                               "--compute", "f32")
        self.assertEqual((result["prompt_ids"], result["output_ids"]), (chat["prompt_ids"], chat["output_ids"]))
        self.assertEqual(result["reasoning"], "")

    def test_text_streams_and_a_stop_string_ends_it(self):
        flags = ["-p", "Hello", "--max-tokens", 12, "--temperature", 0, "--compute", "f32", "--ignore-eos"]
        whole = self.succeeds("generate", *flags)
        word = whole.split()[2]
        cut = self.succeeds("generate", *flags, "--stop", word)
        self.assertEqual(cut.rstrip("\n"), whole[: whole.index(word)])

    def test_a_seed_repeats_a_sample(self):
        sample = ["-p", "Once upon a time", "--temperature", 1, "--max-tokens", 16]
        first, again, other = (self.generate(*sample, "--seed", seed)["output_ids"] for seed in (5, 5, 6))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_ids_work_without_a_tokenizer_and_text_does_not(self):
        model = GOLDEN / "dense-ratio3"
        expected = safetensors_file.read(model / "expected.safetensors")
        ids = ",".join(map(str, expected["ids.5"][2]))
        flags = ["--compute", "f32", "--temperature", 0, "--ignore-eos", "--max-tokens", 32]
        greedy = list(expected["greedy_after_5"][2])
        self.assertEqual(self.generate(model, "--ids", ids, *flags)["output_ids"], greedy)
        self.assertEqual(self.succeeds("generate", model, "--ids", ids, *flags), ",".join(map(str, greedy)) + "\n")
        self.fails(1, "has no tokenizer.json", "generate", model, "-p", "x")

    def test_wrong_input_is_one_line(self):
        self.fails(2, "one of -p TEXT, --messages FILE and --ids", "generate")
        self.fails(2, "one of -p TEXT", "generate", "-p", "x", "--ids", "1")
        self.fails(2, "--ids: \"x\" is not a whole number", "generate", "--ids", "1,x")
        self.fails(1, "999999", "generate", "--ids", "999999")
        self.fails(1, "no such file|cannot be opened", "generate", "--messages", "/nowhere.json")
        self.fails(1, "bad.json", "generate", "--messages", self.file("bad.json", "[{"))
        self.fails(1, "list.json: expected a list", "generate", "--messages", self.file("list.json", "3"))
        self.fails(1, "system message must come first", "generate", "--messages",
                   self.file("order.json", [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]))
        self.fails(2, "--image", "generate", "-p", "x", "--image", "x.png")

    def test_ctrl_c_ends_it_without_a_partial_object(self):
        running = subprocess.Popen([SLUICE, "generate", "-p", "Hello", "--ignore-eos", "--json", "--verbose"], text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment())
        while "loaded" not in running.stderr.readline():
            self.assertIsNone(running.poll())
        time.sleep(1)
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=60)
        self.assertEqual((running.returncode, out), (130, ""))

    def test_a_prompt_longer_than_the_context_is_refused(self):
        self.fails(1, "16", "generate", "--ids", ",".join(["5"] * 20), "--max-model-len", 16)


class Precedence(Case):
    """command line, environment, file, generation_config.json, built-in: seen by how many tokens come."""

    def tokens(self, *arguments, **variables):
        done = self.succeeds("generate", "--json", "-p", "Hello", "--temperature", 0, "--ignore-eos", "--max-model-len", 64,
                             *arguments, **variables)
        return len(json.loads(done)["output_ids"])

    def test_the_nearer_one_wins(self):
        config = self.file("options.toml", "max-tokens = 2\n[run]\nmax-tokens = 9\n")
        self.assertEqual(self.tokens("--config", config), 2)
        self.assertEqual(self.tokens(SLUICE_CONFIG=str(config)), 2)
        self.assertEqual(self.tokens("--config", config, SLUICE_MAX_TOKENS="3"), 3)
        self.assertEqual(self.tokens("--config", config, "--max-tokens", 4, SLUICE_MAX_TOKENS="3"), 4)

    def test_bad_values_name_their_source(self):
        self.fails(2, "SLUICE_MAX_TOKENS", "generate", "-p", "x", SLUICE_MAX_TOKENS="many")
        self.fails(1, "nowhere.toml", "generate", "-p", "x", "--config", "/nowhere.toml")


class Logits(Case):
    def logits(self, model, length, *flags):
        path = FOLDER / "logits.safetensors"
        path.unlink(missing_ok=True)
        out = self.succeeds("logits", GOLDEN / model, "--input", GOLDEN / model / "expected.safetensors", "--key", f"ids.{length}",
                            "--out", path, "--compute", "f32", *flags)
        self.assertEqual(out, "")
        return safetensors_file.read(path)

    def test_rows_equal_those_of_the_reference(self):
        for model, flags in (("dense-ratio3", []), ("dense-packed", ["--chunk", "7"]), ("moe-ratio2", ["--chunk", "64"])):
            expected = safetensors_file.read(GOLDEN / model / "expected.safetensors")
            found = self.logits(model, 65, "--mtp", *flags)
            for name, rows in (("logits", 65), ("mtp_logits", 64)):
                with self.subTest(model=model, tensor=name):
                    self.assertEqual(found[name][:2], ("F32", [rows, 320]))
                    self.assertLess(safetensors_file.relative_error(found[name][2], expected[f"{name}.65"][2]), 1e-4)

    def test_ids_on_the_command_line_and_in_int32_are_the_same(self):
        path, narrow = FOLDER / "a.safetensors", FOLDER / "ids.safetensors"
        safetensors_file.write(narrow, {"ids": ("I32", [3], [1, 2, 3])})
        self.succeeds("logits", GOLDEN / "dense-packed", "--ids", "1,2,3", "--out", path)
        first = path.read_bytes()
        self.succeeds("logits", GOLDEN / "dense-packed", "--input", narrow, "--out", path)
        self.assertEqual(path.read_bytes(), first)
        self.assertEqual(list(safetensors_file.read(path)), ["logits"])

    def test_failures_leave_no_file(self):
        model, out = GOLDEN / "dense-packed", FOLDER / "never.safetensors"
        self.fails(2, "--out", "logits", model, "--ids", "1")
        self.fails(2, "--ids 1,2,3 or --input", "logits", model, "--out", out)
        self.fails(2, "--image-patches", "logits", model, "--ids", "1", "--image-patches", "x", "--out", out)
        self.fails(1, "token id 320 is out of range", "logits", model, "--ids", "320", "--out", out)
        self.fails(1, "more than the context of 2", "logits", model, "--ids", "1,2,3", "--max-model-len", 2, "--out", out)
        self.fails(1, 'no tensor "ids"', "logits", model, "--input", model / "expected.safetensors", "--out", out)
        self.fails(1, "float32", "logits", model, "--input", model / "expected.safetensors", "--key", "logits.1", "--out", out)
        self.fails(1, "/dev/full.*No space left", "logits", model, "--ids", "1", "--out", "/dev/full")
        self.fails(1, "/nowhere/x", "logits", model, "--ids", "1", "--out", "/nowhere/x")
        self.assertEqual(list(FOLDER.glob("never*")), [])

    def test_damaged_models_are_one_line(self):
        for name, pattern, damage in (
            ("truncated", "model.safetensors", lambda m: os.truncate(m / "model.safetensors", 5000)),
            ("no_config", "config.json", lambda m: (m / "config.json").unlink()),
            ("no_weights", "safetensors", lambda m: (m / "model.safetensors").unlink()),
            ("other_kind", "architectures", lambda m: (m / "config.json").write_text('{"architectures": ["Other"]}')),
        ):
            model = FOLDER / name
            shutil.copytree(GOLDEN / "dense-packed", model)
            damage(model)
            with self.subTest(name):
                self.fails(1, pattern, "logits", model, "--ids", "1", "--out", FOLDER / "never.safetensors")
        self.assertEqual(list(FOLDER.glob("never*")), [])


class Text(Case):
    def test_tokens_there_and_back(self):
        cases = [case for case in json.loads((TINY / "expected" / "tokens.json").read_text()) if case["text"].strip()]
        case = max(cases, key=lambda c: len(c["ids"]))
        path = self.file("text.txt", case["text"])
        ids = json.loads(self.succeeds("tokenize", "--file", path, "--json"))["ids"]
        self.assertEqual(ids, case["ids"])
        text = json.loads(self.succeeds("detokenize", ",".join(map(str, ids)), "--json"))["text"]
        self.assertEqual(text, case["decoded"])

    def test_plain_output_and_the_forms_of_input(self):
        plain = self.succeeds("tokenize", "Hello, world")
        self.assertRegex(plain, r"^\d+(,\d+)*\n$")
        self.assertEqual(self.succeeds("tokenize", TINY, "Hello, world"), plain)
        self.assertEqual(self.succeeds("tokenize", "--file", "-", input="Hello, world"), plain)
        self.assertEqual(self.succeeds("detokenize", plain.strip()), "Hello, world\n")

    def test_special_tokens_are_text_when_asked(self):
        marked = json.loads(self.succeeds("tokenize", "<|im_end|>", "--json"))["ids"]
        plain = json.loads(self.succeeds("tokenize", "<|im_end|>", "--no-special", "--json"))["ids"]
        self.assertEqual(marked, [1653])
        self.assertGreater(len(plain), 1)

    def test_wrong_input_is_one_line(self):
        self.fails(2, "needs a text", "tokenize")
        self.fails(2, "found both", "tokenize", TINY, "x", "--file", "y")
        self.fails(1, "nowhere.txt", "tokenize", "--file", "/nowhere.txt")
        self.fails(1, "99999", "detokenize", "99999")
        self.fails(1, "has no tokenizer.json", "tokenize", GOLDEN / "dense-packed", "x")

    def test_templates_give_the_reference_text_or_its_error(self):
        cases = json.loads((TINY / "expected" / "templates.json").read_text())
        case = next(c for c in cases if c.get("tools") and "text" in c and c["options"] == {"add_generation_prompt": True})
        flags = ["--messages", self.file("chat.json", case["messages"]), "--tools", self.file("tools.json", case["tools"])]
        self.assertEqual(self.succeeds("template", *flags), case["text"])
        result = json.loads(self.succeeds("template", *flags, "--json"))
        self.assertEqual((result["prompt"], bool(result["prompt_ids"])), (case["text"], True))
        without = self.succeeds("template", *flags, "--no-generation-prompt")
        self.assertTrue(case["text"].startswith(without) and len(without) < len(case["text"]))
        own = self.file("own.jinja", "{{ messages[0].content }}!")
        self.assertEqual(self.succeeds("template", *flags[:2], "--chat-template", own), case["messages"][0]["content"] + "!")
        broken = self.file("broken.jinja", "{% if %}")
        self.fails(1, "broken.jinja", "template", *flags[:2], "--chat-template", broken)


class Others(Case):
    def test_inspect_shows_config_tensors_and_memory(self):
        result = json.loads(self.succeeds("inspect", "--json", "--max-model-len", 1024))
        self.assertEqual(list(result), ["model", "config", "unknown_config_keys", "tensors", "audit",
                                        "quantization_differences", "device", "memory"])
        self.assertEqual((result["config"]["layers"], result["config"]["draft_head"]), (8, True))
        self.assertEqual(result["memory"]["max_model_len"], 1024)
        stored = sum(safe.stat().st_size for safe in TINY.glob("*.safetensors"))
        tensors = sum(group["bytes"] for group in result["tensors"])
        self.assertLess(abs(stored - tensors), 0.01 * stored)
        text = self.succeeds("inspect", GOLDEN / "moe-ratio2")
        self.assertIn("model.language_model.layers.*.mlp.experts.down_proj", text)
        self.fails(2, "--compare", "inspect", "--compare", "cpu,cuda")

    def test_inspect_names_the_form_of_every_tensor(self):
        for folder, forms in {"dense-ratio3-fp8-block": {"plain", "fp8"}, "dense-ratio3-ct-int4": {"plain", "packed int"},
                              "moe-ratio2-modelopt-mixed": {"plain", "fp8", "nvfp4"}}.items():
            result = json.loads(self.succeeds("inspect", GOLDEN / folder, "--json"))
            self.assertEqual({group["format"] for group in result["tensors"]}, forms)
            self.assertEqual(result["audit"], {"complete": True, "passed_over": []})

    def test_lists_of_modules_that_the_tensors_contradict_are_named(self):
        model = FOLDER / "wrong_lists"
        shutil.copytree(GOLDEN / "dense-ratio3-fp8-block", model)
        config = json.loads((model / "config.json").read_text())
        config["quantization_config"]["modules_to_not_convert"] = ["model.visual", "mtp", "re:.*mlp.down_proj", "re:(?=a)"]
        (model / "config.json").write_text(json.dumps(config))
        found = json.loads(self.succeeds("inspect", model, "--json"))["quantization_differences"]
        self.assertEqual(found["not_understood"], ["re:(?=a)"])
        name = "model.language_model.layers.*.mlp.down_proj"
        self.assertIn({"modules": name, "count": 4, "listed_quantized": False, "stored": "float8_e4m3"}, found["modules"])
        self.assertIn(f"{name} (4): listed as not quantized, stored as float8_e4m3", self.succeeds("inspect", model))
        done = subprocess.run([PROGRAM, "logits", model, "--ids", "1,2", "--out", FOLDER / "listed.safetensors"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.stderr.count("quantization_config and the tensors, which count: "), 1, done.stderr)

    def test_unknown_config_keys_are_listed(self):
        model = FOLDER / "extra_key"
        shutil.copytree(GOLDEN / "dense-packed", model)
        config = json.loads((model / "config.json").read_text())
        (model / "config.json").write_text(json.dumps({**config, "novelty": 1}))
        self.assertEqual(json.loads(self.succeeds("inspect", model, "--json"))["unknown_config_keys"], ["novelty"])

    def test_bench_prints_the_documented_records(self):
        records = json.loads(self.succeeds("bench", GOLDEN / "dense-packed", "--pp", 16, "--tg", 4, "--depth", "0,64", "--batch", "1,2",
                                           "--repeat", 1, "--json"))
        names = [record["case"] for record in records]
        self.assertEqual(names[:3], ["prefill.dense-packed.bf16.b1.c16", "decode.dense-packed.bf16.b1.c0",
                                     "memory.dense-packed.bf16.b1.c0"])
        self.assertIn("decode.dense-packed.bf16.b2.c64", names)
        for record in records:
            self.assertLessEqual({"case", "value", "unit", "limit", "share", "device", "date", "commit", "command"}, set(record))
            self.assertGreater(record["value"], 0)
            self.assertRegex(record["date"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        table = self.succeeds("bench", GOLDEN / "dense-packed", "--pp", 0, "--tg", 2, "--repeat", 1, "--markdown")
        self.assertIn("| decode.dense-packed.bf16.b1.c0", table)
        self.assertNotIn("prefill", table)

    def test_bench_refuses_what_it_cannot_do(self):
        self.fails(2, "--shape: \"tiny\" is unknown", "bench", "--shape", "tiny")
        self.fails(2, "--format fp8", "bench", "--shape", "qwen3.5-0.8b", "--format", "fp8")
        self.fails(1, "more than the model's context", "bench", GOLDEN / "dense-packed", "--pp", 1000000)

    def test_list_shows_the_cache(self):
        snapshot = FOLDER / "hub" / "models--Org--Name" / "snapshots" / "abc"
        snapshot.mkdir(parents=True)
        (snapshot / "config.json").write_text("{}")
        models = json.loads(self.succeeds("list", "--json", HF_HUB_CACHE=str(FOLDER / "hub")))
        self.assertEqual([(m["name"], m["revision"], m["path"]) for m in models], [("Org/Name", "abc", str(snapshot))])
        self.assertEqual(self.succeeds("list", HF_HUB_CACHE=str(FOLDER / "nothing")), "")

    def test_version_and_overview(self):
        result = json.loads(self.succeeds("version", "--json"))
        self.assertEqual(list(result), ["version", "commit", "build", "devices"])
        self.assertIn(result["version"], self.succeeds("--version"))
        self.assertIn("generate", self.succeeds("--help"))

    def test_every_command_has_help_with_an_example(self):
        for command in re.findall(r"^  (\w+) +[A-Z]", self.succeeds("--help"), re.M):
            with self.subTest(command):
                self.assertRegex(self.succeeds(command, "--help"), rf"(?s)usage: sluice {command}.*example:\n  .*sluice {command}")

    @unittest.skipUnless(shutil.which("bash"), "bash is not installed")
    def test_bash_completes_commands_options_and_choices(self):
        script = self.file("complete.bash", self.succeeds("completion", "bash"))
        for words, expected in (("gen", "generate"), ("generate --max-m", "--max-model-len"), ("run --thinking o", "on off")):
            typed = ["sluice", *words.split()]
            done = subprocess.run(["bash", "-c", f"source {script}; COMP_WORDS=({' '.join(typed)}); COMP_CWORD={len(typed) - 1}; "
                                   "_sluice; echo \"${COMPREPLY[@]}\""], capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout.strip(), expected)
        for shell in ("zsh", "fish"):
            self.assertIn("max-model-len", self.succeeds("completion", shell))

    def test_wrong_usage_is_2_and_missing_models_are_1(self):
        self.fails(2, "a command is missing")
        self.fails(2, 'unknown command "chat"', "chat")
        self.fails(2, "--stop: clients send stop strings with each request", "serve", "--stop", "x")
        self.fails(2, 'unknown option "--colour"', "run", "--colour")
        self.fails(2, "--max-tokens", "run", "--max-tokens")
        self.fails(2, "--device cuda", "run", "-p", "x", "--device", "cuda")
        self.fails(2, "--tensor-parallel-size", "logits", "--ids", "1", "--out", "x", "-tp", 2)
        self.fails(1, "no such file or directory", "run", "/nowhere", "-p", "x")
        self.fails(1, "no such model in the cache", "run", "Org/Nothing", "-p", "x")
        self.fails(1, "x.gguf: truncated", "run", self.file("x.gguf", "GGUF"), "-p", "x")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
