"""`sluice quantize`: what it writes is what it says, and answers as the model does: quantize_test.py PROGRAM SOURCE."""
import json
import math
import resource
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import numpy as np

import audit_test
import gguf_file
import quantized_file
import safetensors_file
from program_case import GOLDEN, PROGRAM, TINY, ProgramCase, environment

GGUF = ("q8_0", "q6_k", "q4_k_m")
FORMATS = GGUF + ("fp8", "nvfp4", "int4")
BITS = {"q8_0": 8, "q6_k": 8, "fp8": 8}
REAL_TOKENS = 1677


class Case(ProgramCase):
    def out(self, form, name="out"):
        return self.folder / (f"{name}.gguf" if form in GGUF else name)

    def quantize(self, source, form, *flags, name="out"):
        out = self.out(form, name)
        report = json.loads(self.succeeds("quantize", source, out, "--format", form, "--json", *flags))
        self.assertEqual([p.name for p in self.folder.glob("*.partial")], [])
        return out, report

    def expect_same(self, found, expected, tolerance):
        self.assertEqual(found.keys(), expected.keys())
        for name, rows in expected.items():
            self.assertEqual(found[name].shape, rows.shape)
            self.assertLess(np.linalg.norm(found[name] - rows) / np.linalg.norm(rows), tolerance, name)


def text_chats():
    return [chat for chat in json.loads((TINY / "expected" / "chats.json").read_text()) if not chat["media"]]


class Numbers(Case):
    """The program computes with the numbers that an independent reader finds in the file."""
    IDS = np.random.default_rng(6).integers(0, 310, 70).tolist()

    def expect_same_numbers(self, source, form, ids):
        out, report = self.quantize(source, form, name=f"{source.name}-{form}")
        config = json.loads((source / "config.json").read_text())
        values = quantized_file.gguf_values(out, source) if form in GGUF else quantized_file.folder_values(out)
        plain = self.folder / f"{source.name}-{form}-plain"
        quantized_file.write_f32(plain, {**config, "language_model_only": form in GGUF}, values)
        found, expected = self.logits(out, ids, "--mtp"), self.logits(plain, ids, "--mtp")
        self.expect_same(found, expected, 2e-4)
        self.expect_errors(report, source, values)
        self.assertTrue(json.loads(self.succeeds("inspect", out, "--json"))["audit"]["complete"])

    def expect_errors(self, report, source, values):
        """The errors that the command reports are those between the source and what Python reads."""
        original, squares, errors = quantized_file.split_experts(gguf_file.read_safetensors(source)), {}, {}
        for name, now in quantized_file.split_experts(values).items():
            parts = name.removesuffix(".weight").split(".")
            if ".experts." in name and report["format"] in GGUF:
                del parts[-2]  # all experts are one matrix
            group = ".".join("*" if part.isdigit() else part for part in parts)
            before = original[name].astype(np.float64)
            squares[group] = squares.get(group, 0.0) + (before**2).sum()
            errors[group] = errors.get(group, 0.0) + ((now - before) ** 2).sum()
        names = [group["name"] for group in report["tensors"]]
        compared = 0
        for group in report["tensors"]:
            if "relative_error" not in group or names.count(group["name"]) > 1:
                continue
            expected = math.sqrt(errors[group["name"]] / squares[group["name"]])
            self.assertAlmostEqual(group["relative_error"], expected, delta=1e-6 + 1e-3 * expected, msg=group["name"])
            compared += 1
        self.assertGreater(compared, 10)

    def test_dense(self):
        for form in FORMATS:
            with self.subTest(form):
                self.expect_same_numbers(GOLDEN / "dense-ratio3", form, self.IDS)

    def test_experts(self):
        for form in FORMATS:
            with self.subTest(form):
                self.expect_same_numbers(GOLDEN / "moe-ratio2", form, self.IDS)

    def test_the_bundled_model(self):
        for form in FORMATS:
            with self.subTest(form):
                self.expect_same_numbers(TINY, form, text_chats()[0]["prompt_ids"])

    def test_quantized_sources(self):
        """From any form to any other: the second step is as near to the first as its form allows."""
        source, limits = GOLDEN / "moe-ratio2", {"q8_0": 0.01, "fp8": 0.04, "nvfp4": 0.12, "int4": 0.12}
        for first, second in (("fp8", "q8_0"), ("q8_0", "fp8"), ("int4", "nvfp4"), ("q4_k_m", "int4")):
            with self.subTest(first=first, second=second):
                middle, _ = self.quantize(source, first, name=f"{first}-{second}-1")
                last, _ = self.quantize(middle, second, name=f"{first}-{second}-2")
                before, after = self.values(middle, first, source), self.values(last, second, source)
                for name, values in after.items():
                    error = np.linalg.norm(values - before[name]) / np.linalg.norm(before[name])
                    self.assertLess(error, limits[second], name)
                self.assertGreater(len(after), 200)
                self.logits(last, self.IDS, "--mtp")

    @staticmethod
    def values(out, form, source):
        values = quantized_file.gguf_values(out, source) if form in GGUF else quantized_file.folder_values(out)
        return quantized_file.split_experts(values)

    def test_plain_numbers_survive_the_way_there_and_back(self):
        """With --keep *=f32, a GGUF file and a folder made of it again hold the numbers of the source."""
        for name in ("dense-ratio3", "moe-ratio2", "dense-packed"):
            there, _ = self.quantize(GOLDEN / name, "q8_0", "--keep", "*=f32", name=f"{name}-there")
            back, _ = self.quantize(there, "fp8", "--keep", "*=f32", name=f"{name}-back")
            expected = self.logits(GOLDEN / name, self.IDS, "--mtp")
            self.expect_same(self.logits(there, self.IDS, "--mtp"), expected, 1e-5)
            self.expect_same(self.logits(back, self.IDS, "--mtp"), expected, 1e-5)


class Agreement(Case):
    """Quantized, the bundled model still says what it says."""

    def places(self, model):
        """The best real token at each place that predicts one of the reply, chat by chat."""
        best = {}
        for chat in text_chats():
            prompt, reply = chat["prompt_ids"], chat["output_ids"]
            rows = self.logits(model, prompt + reply[:-1])["logits"][len(prompt) - 1 :, :REAL_TOKENS]
            best[chat["name"]] = rows.argmax(1)
        return best

    def test_the_best_tokens_agree(self):
        expected = self.places(TINY)
        failures = []
        for form in FORMATS:
            model, report = self.quantize(TINY, form, name=f"tiny-{form}")
            found = self.places(model)
            same = sum(int((found[name] == best).sum()) for name, best in expected.items())
            places = sum(len(best) for best in expected.values())
            clear = [chat for chat in text_chats() if chat["smallest_top2_gap"] > 2]
            equal = sum(found[chat["name"]].tolist() == chat["output_ids"] for chat in clear)
            print(f"{form}: {same} of {places} places ({100 * same / places:.2f}%), {equal} of {len(clear)} clear chats, "
                  f"error {report['total']['relative_error']:.4f}", file=sys.stderr)
            if same < (0.98 if form in BITS else 0.96) * places or equal < len(clear):
                failures.append(form)
        self.assertEqual(failures, [])
        self.assertGreater(len(clear), 2)


class GgufFiles(Case):
    """The file is what an independent converter writes."""

    def expect_as_converted(self, source, tokenizer):
        ours, _ = self.quantize(source, "q8_0", "--keep", "*=f32", name=source.name)
        theirs = self.folder / "theirs.gguf"
        gguf_file.write_gguf(theirs, source, matrices="f32", experts="apart", tokenizer=tokenizer)
        found, expected = quantized_file.gguf_tensors(ours), quantized_file.gguf_tensors(theirs)
        self.assertEqual(found.keys(), expected.keys())
        for name, (kind, values) in expected.items():
            self.assertEqual(found[name][0], kind, name)
            np.testing.assert_allclose(found[name][1], values, rtol=1e-6, atol=0, err_msg=name)
        self.expect_keys(ours, theirs)

    def expect_keys(self, ours, theirs):
        fields = [{key: field.contents() for key, field in quantized_file.gguf.GGUFReader(path).fields.items()
                   if not key.startswith("GGUF.")} for path in (ours, theirs)]
        for key, value in fields[1].items():
            self.assertIn(key, fields[0])
            self.assertEqual(fields[0][key], value, key)
        self.assertEqual(fields[0]["general.file_type"], 7)

    def test_dense_and_experts(self):
        self.expect_as_converted(GOLDEN / "dense-ratio3", tokenizer=False)
        self.expect_as_converted(GOLDEN / "moe-ratio2", tokenizer=False)

    def test_the_tokenizer_too(self):
        self.expect_as_converted(TINY, tokenizer=True)

    def test_it_answers_as_a_chat(self):
        model, _ = self.quantize(TINY, "q8_0")
        self.assertEqual(self.succeeds("run", model, "-p", "What is the capital of Peru?", "--temperature", "0"),
                         "The capital of Peru is Lima.\n")
        for text in ("Hello, world!", "<|im_start|>user\nhi<|im_end|>\n<think>", "[PAD1700]"):
            self.assertEqual(self.succeeds("tokenize", model, text), self.succeeds("tokenize", TINY, text))

    def test_a_folder_made_of_it_answers_too(self):
        model, _ = self.quantize(TINY, "q8_0")
        folder, _ = self.quantize(model, "fp8", name="back")
        self.assertEqual(self.succeeds("run", folder, "-p", "What is the capital of Peru?", "--temperature", "0"),
                         "The capital of Peru is Lima.\n")
        for text in ("Hello, world!", "<|im_start|>user\nhi<|im_end|>\n<think>", "[PAD1700]"):
            self.assertEqual(self.succeeds("tokenize", folder, text), self.succeeds("tokenize", TINY, text))
        self.assertEqual(json.loads((folder / "config.json").read_text())["model_type"], "qwen3_5")

    def test_the_mix_of_q4_k_m(self):
        model, report = self.quantize(TINY, "q4_k_m")
        types = {name: kind for name, (kind, _) in quantized_file.gguf_tensors(model).items()}
        self.assertEqual(types["token_embd.weight"], "Q6_K")  # it is the head as well
        blocks = 9  # the draft head's is the last
        more = [b for b in range(blocks) if b < blocks // 8 or b >= 7 * blocks // 8 or (b - blocks // 8) % 3 == 2]
        for block in range(blocks):
            wanted = "Q6_K" if block in more else "Q4_K"
            mixer = "attn_v" if f"blk.{block}.attn_v.weight" in types else "attn_qkv"
            self.assertEqual(types[f"blk.{block}.{mixer}.weight"], wanted)
            self.assertEqual(types[f"blk.{block}.ffn_down.weight"], wanted)
            self.assertEqual(types[f"blk.{block}.ffn_up.weight"], "Q4_K")
        self.assertTrue(any("model.visual" in note for note in report["notes"]), report["notes"])

    def test_rows_that_blocks_do_not_divide_are_named(self):
        model, report = self.quantize(GOLDEN / "dense-ratio3", "q4_k_m")
        kinds = {name: kind for name, (kind, _) in quantized_file.gguf_tensors(model).items()}
        self.assertEqual(kinds["blk.0.ffn_down.weight"], "Q8_0")
        self.assertEqual(kinds["blk.0.ssm_alpha.weight"], "F32")
        self.assertTrue(any("mlp.down_proj" in note and "q8_0" in note for note in report["notes"]), report["notes"])


class Folders(Case):
    def config(self, form, *flags):
        out, _ = self.quantize(TINY, form, *flags, name="-".join((form, *flags)).replace("*", "_"))
        return out, json.loads((out / "config.json").read_text())["quantization_config"]

    def test_configs_are_those_of_the_usual_engines(self):
        out, fp8 = self.config("fp8")
        self.assertEqual((fp8["quant_method"], fp8["weight_block_size"]), ("fp8", [128, 128]))
        kept = fp8["modules_to_not_convert"]
        self.assertIn("model.language_model.embed_tokens", kept)
        self.assertIn("model.language_model.layers.0.linear_attn.in_proj_a", kept)
        self.assertIn("model.visual.blocks.0.attn.qkv", kept)
        self.assertIn("mtp.fc", kept)
        self.assertNotIn("mtp.layers.0.mlp.up_proj", kept)
        out, nvfp4 = self.config("nvfp4")
        self.assertEqual((nvfp4["quant_algo"], nvfp4["group_size"]), ("NVFP4", 16))
        self.assertIn("mtp.layers.0.mlp.up_proj", nvfp4["ignore"])
        beside = json.loads((out / "hf_quant_config.json").read_text())["quantization"]
        self.assertEqual((beside["quant_algo"], beside["exclude_modules"]), ("NVFP4", nvfp4["ignore"]))
        _, int4 = self.config("int4")
        group = int4["config_groups"]["group_0"]
        self.assertEqual((int4["format"], group["weights"]["group_size"], group["targets"]), ("pack-quantized", 128, ["Linear"]))

    def test_every_kept_module_is_stored_plainly_and_no_other(self):
        for form, key in (("fp8", "modules_to_not_convert"), ("nvfp4", "ignore"), ("int4", "ignore")):
            out, config = self.config(form)
            raw = safetensors_file.read_arrays(out)
            plain = {n.removesuffix(".weight") for n, (dtype, values) in raw.items()
                     if n.endswith(".weight") and values.ndim >= 2 and dtype in ("BF16", "F16", "F32")}
            self.assertEqual(set(config[key]), plain)

    def test_what_stacks_share_a_factor_in_nvfp4(self):
        out, _ = self.config("nvfp4")
        raw = safetensors_file.read_arrays(out)
        for layer, names in ((0, ("linear_attn.in_proj_qkv", "linear_attn.in_proj_z")), (0, ("mlp.gate_proj", "mlp.up_proj")),
                             (3, ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"))):
            base = f"model.language_model.layers.{layer}"
            self.assertEqual(len({float(raw[f"{base}.{name}.weight_scale_2"][1]) for name in names}), 1)

    def test_everything_else_is_copied(self):
        out, _ = self.config("fp8")
        for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json",
                     "preprocessor_config.json"):
            self.assertEqual((out / name).read_bytes(), (TINY / name).read_bytes(), name)
        found, expected = safetensors_file.read_arrays(out), safetensors_file.read_arrays(TINY)
        copied = [n for n in expected if n.startswith("model.visual.") or n.endswith("norm.weight") or "A_log" in n]
        self.assertGreater(len(copied), 40)
        for name in copied:
            self.assertEqual(found[name][0], expected[name][0])
            np.testing.assert_array_equal(found[name][1], expected[name][1])

    def test_keep(self):
        out, config = self.config("nvfp4", "--keep", "layers.3.*=bf16", "--keep", "embed_tokens=fp8")
        raw = safetensors_file.read_arrays(out)
        base = "model.language_model"
        self.assertEqual(raw[f"{base}.layers.3.mlp.up_proj.weight"][0], "BF16")
        self.assertEqual(raw[f"{base}.layers.4.mlp.up_proj.weight"][0], "U8")
        self.assertEqual(raw[f"{base}.embed_tokens.weight"][0], "F8_E4M3")
        self.assertEqual(config["quant_algo"], "MIXED_PRECISION")
        self.assertEqual(config["quantized_layers"][f"{base}.layers.4.mlp.up_proj"]["quant_algo"], "NVFP4")
        self.succeeds("logits", out, "--ids", "1,2,3", "--out", self.folder / "x.safetensors")


class PerplexityOfAText(Case):
    def test_it_is_that_of_the_logits(self):
        text = text_chats()[0]["rendered"] + text_chats()[0]["output_text"]
        (self.folder / "text.txt").write_text(text)
        out, report = self.quantize(TINY, "q8_0", "--text", self.folder / "text.txt", "--compute", "f32")
        ids = json.loads(self.succeeds("tokenize", TINY, text, "--json"))["ids"]
        self.assertEqual(report["perplexity"]["tokens"], len(ids) - 1)
        for model, key in ((TINY, "before"), (out, "after")):
            rows = self.logits(model, ids)["logits"][:-1, :REAL_TOKENS].astype(np.float64)
            likelihood = rows[np.arange(len(ids) - 1), ids[1:]] - np.log(np.exp(rows).sum(1))
            self.assertAlmostEqual(report["perplexity"][key], math.exp(-likelihood.mean()), delta=1e-4)


class Refusals(Case):
    def test_wrong_usage(self):
        out = self.folder / "out"
        self.fails(2, "needs --format", "quantize", TINY, out)
        self.fails(2, '"q3_k" is unknown, expected q8_0', "quantize", TINY, out, "--format", "q3_k")
        self.fails(2, "needs IN", "quantize", "--format", "fp8")
        self.fails(2, "must not end in .gguf", "quantize", TINY, f"{out}.gguf", "--format", "fp8")
        self.fails(2, "must end in .gguf", "quantize", TINY, out, "--format", "q8_0")
        self.fails(2, "no matrix of the model", "quantize", TINY, out, "--format", "fp8", "--keep", "up_prj=bf16")
        self.fails(2, "no form of matrices in safetensors", "quantize", TINY, out, "--format", "fp8", "--keep", "lm_head=q4_k")
        self.fails(2, "not NAME=FORMAT", "quantize", TINY, out, "--format", "fp8", "--keep", "lm_head")
        self.fails(2, "no multiple of 256", "quantize", GOLDEN / "dense-ratio3", f"{out}.gguf", "--format", "q8_0", "--keep",
                   "up_proj=q4_k")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_biases_have_no_place_in_a_gguf_file(self):
        self.fails(1, "attention_bias", "quantize", GOLDEN / "text-yarn-bias", self.folder / "x.gguf", "--format", "q8_0")
        self.quantize(GOLDEN / "text-yarn-bias", "fp8")

    def test_an_out_that_is_there(self):
        for form in ("fp8", "q8_0"):
            out, _ = self.quantize(TINY, form)
            self.fails(2, "is there already; --force", "quantize", TINY, out, "--format", form)
            self.quantize(TINY, form, "--force")
            self.fails(2, "is the source", "quantize", out, out, "--format", form, "--force")
        (self.folder / "out" / "more").mkdir()
        self.fails(2, "no plain file", "quantize", TINY, self.folder / "out", "--format", "fp8", "--force")

    def test_numbers_that_are_not_finite_are_named(self):
        values = gguf_file.read_safetensors(GOLDEN / "dense-packed")
        name = "model.language_model.layers.0.mlp.up_proj.weight"
        values[name] = values[name].copy()
        values[name][3, 5] = np.nan
        quantized_file.write_f32(self.folder / "nan", json.loads((GOLDEN / "dense-packed" / "config.json").read_text()), values)
        self.fails(1, "up_proj.*holds nan in row 3", "quantize", self.folder / "nan", self.folder / "out", "--format", "fp8")
        self.assertFalse((self.folder / "out").exists())

    def test_a_number_too_large_for_float16_is_named(self):
        values = gguf_file.read_safetensors(GOLDEN / "dense-packed")
        name = "model.language_model.layers.0.mlp.up_proj.weight"
        values[name] = values[name] * 0 + 70000
        quantized_file.write_f32(self.folder / "big", json.loads((GOLDEN / "dense-packed" / "config.json").read_text()), values)
        self.fails(1, "up_proj: 70000 is more than float16", "quantize", self.folder / "big", self.folder / "out", "--format",
                   "fp8", "--keep", "up_proj=f16")

    def test_a_full_disk_leaves_nothing(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # noqa: E731
        for form in ("fp8", "q8_0"):
            self.fails(1, "cannot be written: File too large", "quantize", TINY, self.out(form), "--format", form,
                       preexec_fn=limit)
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_an_interrupted_run_leaves_nothing(self):
        source = self.folder / "source"
        source.mkdir()
        audit_test.Fake("0.8b").write(source)
        for form in ("nvfp4", "q4_k_m"):
            out = self.out(form)
            run = subprocess.Popen([PROGRAM, "quantize", source, out, "--format", form], env=environment(),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            partial = Path(f"{out}.partial")
            while run.poll() is None and not partial.exists():
                time.sleep(0.01)
            run.send_signal(signal.SIGINT)
            self.assertEqual((run.communicate(timeout=120), run.returncode), ((b"", b""), 130))
            self.assertEqual([p.name for p in self.folder.iterdir()], ["source"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
