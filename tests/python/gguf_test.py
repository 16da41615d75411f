"""GGUF files of the golden checkpoints and the bundled model must answer as their folders do: gguf_test.py PROGRAM SOURCE."""
import json
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import gguf_file
from program_case import GOLDEN, TINY, ProgramCase

TEXTS = ["Hello, world!", "  3 spaces,\n\n\ttabs and 12345", "e\u0301 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \U0001f999", "it's",
         "<|im_start|>user\nhi<|im_end|>\n<think>", "[PAD1700]"]


class Case(ProgramCase):
    def convert(self, folder, name="model.gguf", **options):
        path = self.folder / name
        gguf_file.write_gguf(path, folder, **options)
        return path


class Logits(Case):
    IDS = np.random.default_rng(5).integers(0, 310, 70).tolist()  # more than a chunk of the delta rule

    def expect_same(self, model, folder, tolerance):
        found, expected = self.logits(model, self.IDS, "--mtp"), self.logits(folder, self.IDS, "--mtp")
        for name, rows in expected.items():
            self.assertEqual(found[name].shape, rows.shape)
            difference = np.linalg.norm(found[name] - rows) / np.linalg.norm(rows)
            self.assertLess(difference, tolerance, name)
            cosine = (found[name] * rows).sum(1) / np.linalg.norm(found[name], axis=1) / np.linalg.norm(rows, axis=1)
            self.assertGreater(cosine.min(), 0.9999, name)

    def test_bf16(self):
        for name in ("dense-ratio3", "moe-ratio2", "dense-packed"):
            with self.subTest(name):
                self.expect_same(self.convert(GOLDEN / name), GOLDEN / name, 1e-5)

    def test_f32(self):
        self.expect_same(self.convert(GOLDEN / "dense-ratio3", matrices="f32"), GOLDEN / "dense-ratio3", 1e-5)

    def test_f16_rounds_small_numbers(self):
        self.expect_same(self.convert(GOLDEN / "moe-ratio2", matrices="f16"), GOLDEN / "moe-ratio2", 1e-4)

    def test_gate_and_up_of_the_experts_apart(self):
        self.expect_same(self.convert(GOLDEN / "moe-ratio2", experts="apart"), GOLDEN / "moe-ratio2", 1e-5)

    def test_blocks_are_the_numbers_they_stand_for(self):
        for name, experts in (("dense-ratio3", "fused"), ("moe-ratio2", "fused"), ("moe-ratio2", "apart")):
            with self.subTest(name, experts=experts):
                blocks = self.convert(GOLDEN / name, "blocks.gguf", matrices="blocks", experts=experts)
                numbers = self.convert(GOLDEN / name, "numbers.gguf", matrices="blocks_as_f32", experts=experts)
                self.assertLess(blocks.stat().st_size, 0.5 * numbers.stat().st_size)
                self.expect_same(blocks, numbers, 1e-5)

    def test_a_set_of_files(self):
        self.convert(GOLDEN / "dense-ratio3", split_max_tensors=20)
        parts = sorted(self.folder.glob("model-*.gguf"))
        self.assertGreater(len(parts), 2)
        self.expect_same(parts[0], GOLDEN / "dense-ratio3", 1e-5)
        self.expect_same(self.folder, GOLDEN / "dense-ratio3", 1e-5)
        self.fails(1, "name the first", "inspect", parts[1])
        parts[-1].unlink()
        self.fails(1, "missing, but", "inspect", parts[0])

    def test_a_dt_bias_without_its_suffix(self):
        model = self.convert(GOLDEN / "dense-ratio3", rename=lambda name: name.replace("ssm_dt.bias", "ssm_dt"))
        self.expect_same(model, GOLDEN / "dense-ratio3", 1e-5)

    def test_a_tensor_that_the_family_does_not_have(self):
        model = self.convert(GOLDEN / "dense-packed", rename=lambda name: name.replace("attn_q_norm", "attn_q_other"))
        self.fails(1, "attn_q_other|q_norm", "logits", model, "--ids", "1", "--out", self.folder / "x.safetensors")


class PictureTower(Case):
    def beside(self, folder, **options):
        """A text model with its tower beside it."""
        model = self.convert(folder)
        gguf_file.write_mmproj(self.folder / "mmproj-BF16.gguf", folder, **options)
        return model

    def groups(self, *arguments):
        result = json.loads(self.succeeds("inspect", *arguments, "--json"))
        self.assertEqual(result["audit"], {"complete": True, "passed_over": []})
        return result["config"]["vision"], {
            group["name"]: (group["count"], group["shape"]) for group in result["tensors"] if ".visual." in group["name"]}

    def test_it_shows_what_the_folder_has(self):
        for folder in (TINY, GOLDEN / "dense-ratio3", GOLDEN / "moe-ratio2"):
            for matrices in ("bf16", "f16"):
                with self.subTest(folder.name, matrices=matrices):
                    found = self.groups(self.beside(folder, matrices=matrices))
                    self.assertEqual(found, self.groups(folder))
                    self.assertEqual(found[0], True)
                    self.assertGreater(len(found[1]), 20)

    def test_the_text_is_the_same_with_it(self):
        self.expect_logits(self.beside(GOLDEN / "dense-ratio3"))

    def expect_logits(self, model):
        out = self.folder / "logits.safetensors"
        self.succeeds("logits", model, "--ids", "1,2,3", "--out", out)
        alone = self.folder / "alone.safetensors"
        self.succeeds("logits", model, "--mmproj", "none", "--ids", "1,2,3", "--out", alone)
        self.assertEqual(out.read_bytes(), alone.read_bytes())

    def test_it_can_be_named_or_left_out(self):
        model = self.beside(GOLDEN / "dense-ratio3")
        other = self.folder / "tower.gguf"
        (self.folder / "mmproj-BF16.gguf").rename(other)
        self.assertEqual(self.groups(model), (False, {}))
        self.assertEqual(self.groups(model, "--mmproj", other), self.groups(GOLDEN / "dense-ratio3"))
        other.rename(self.folder / "mmproj-F16.gguf")
        self.assertEqual(self.groups(model, "--mmproj", "none"), (False, {}))

    def test_towers_that_do_not_fit_are_refused(self):
        folder = GOLDEN / "dense-ratio3"
        cases = (({"leave_out": ["v.patch_embd.weight.1"]}, '"v.patch_embd.weight.1" is missing'),
                 ({"projector": "pixtral"}, '"clip.projector_type" is "pixtral", expected qwen3vl_merger'),
                 ({"extra": {"v.deepstack.1.fc1.weight": np.zeros((4, 4))}}, "deepstack is not supported"),
                 ({"extra": {"mm.1.weight": np.zeros((4, 4))}}, '"mm.1.weight"'))
        for options, message in cases:
            with self.subTest(message):
                self.fails(1, message, "inspect", self.beside(folder, **options))
        gguf_file.write_mmproj(self.folder / "mmproj-BF16.gguf", TINY)
        self.fails(1, "makes rows of 256, but .* has rows of 64: it belongs to another model", "inspect", self.convert(folder))

    def test_a_tensor_that_is_missing_is_named(self):
        model = self.beside(GOLDEN / "dense-ratio3", leave_out=["v.blk.1.ln2.bias"])
        problem = json.loads(self.succeeds("inspect", model, "--json"))["audit"]["problem"]
        self.assertIn('"model.visual.blocks.1.norm2.bias" [72] is missing', problem)


class TinyModel(Case):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="sluice_gguf_")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.model = Path(cls.scratch.name) / "Tiny-BF16.gguf"
        gguf_file.write_gguf(cls.model, TINY, tokenizer=True)

    def test_texts_have_the_same_ids(self):
        for text in TEXTS:
            for flags in ([], ["--no-special"]):
                with self.subTest(text=text, flags=flags):
                    found = self.succeeds("tokenize", self.model, text, *flags)
                    self.assertEqual(found, self.succeeds("tokenize", TINY, text, *flags))

    def test_the_folder_that_holds_it_is_the_model_too(self):
        self.assertEqual(self.succeeds("tokenize", self.model.parent, "Hello"), self.succeeds("tokenize", TINY, "Hello"))

    def test_the_template_is_the_same(self):
        messages = self.folder / "messages.json"
        messages.write_text(json.dumps([{"role": "user", "content": "Hello"}]))
        self.assertEqual(self.succeeds("template", self.model, "--messages", messages, "--json"),
                         self.succeeds("template", TINY, "--messages", messages, "--json"))

    def test_it_answers(self):
        question = ["-p", "What is the capital of Peru?", "--temperature", "0"]
        self.assertEqual(self.succeeds("run", self.model, *question), "The capital of Peru is Lima.\n")

    def test_a_reply_ends_where_the_folder_ends_it(self):
        messages = self.folder / "messages.json"
        messages.write_text(json.dumps([{"role": "user", "content": "What is the capital of Peru?"}]))
        replies = []
        for model in (self.model, TINY):
            reply = json.loads(self.succeeds("generate", model, "--messages", messages, "--temperature", "0", "--json"))
            replies.append((reply["output_ids"], reply["finish_reason"]))
        self.assertEqual(replies[0], replies[1])

    def test_inspect_shows_what_the_folder_has(self):
        found = json.loads(self.succeeds("inspect", self.model, "--json"))
        expected = json.loads(self.succeeds("inspect", TINY, "--json"))
        vision = {"vision": found["config"]["vision"]}
        self.assertEqual(found["config"], {**expected["config"], **vision})
        self.assertEqual(found["unknown_config_keys"], [])
        names = {group["name"] for group in found["tensors"]}
        self.assertLessEqual(names, {group["name"] for group in expected["tensors"]})

    def test_two_models_in_a_folder_must_be_told_apart(self):
        for name in ("a.gguf", "b.gguf", "mmproj-a.gguf"):
            (self.folder / name).symlink_to(self.model)
        self.fails(1, "holds 2 GGUF models; name one of them: a.gguf, b.gguf", "inspect", self.folder)

    def test_an_unknown_pre_tokenizer_is_named(self):
        path = self.folder / "other.gguf"
        writer = gguf_file.gguf.GGUFWriter(path, "qwen35")
        gguf_file.write_tokenizer(writer, TINY, 2048, pre="llama-bpe")
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        self.fails(1, '"tokenizer.ggml.pre" is "llama-bpe"', "tokenize", path, "Hello")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
