"""Files with nothing but the headers of the published checkpoints pass the audit of `inspect`: audit_test.py PROGRAM SOURCE."""
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = Path(sys.argv[1]).resolve()
BYTES = {"BF16": 2, "F32": 4, "F8_E4M3": 1, "U8": 1}
VOCABULARY = 248320
# Layers, hidden, intermediate, experts, heads, KV heads, value heads, tied, vision tower (depth, hidden, intermediate, heads).
SMALL_TOWER, LARGE_TOWER = (12, 768, 3072, 12), (27, 1152, 4304, 16)
SHAPES = {
    "0.8b": (24, 1024, 3584, 0, 8, 2, 16, True, SMALL_TOWER),
    "9b": (32, 4096, 12288, 0, 16, 4, 32, False, LARGE_TOWER),
    "27b": (64, 5120, 17408, 0, 24, 4, 48, False, LARGE_TOWER),
    "35b-a3b": (40, 2048, 512, 256, 16, 2, 32, False, LARGE_TOWER),
    "122b-a10b": (48, 3072, 1024, 256, 32, 2, 64, False, LARGE_TOWER),
}
RANKS = (1, 2, 4, 8)
if "SLUICE_SANITIZED" in os.environ:
    SHAPES = {name: SHAPES[name] for name in ("0.8b", "35b-a3b")}
    RANKS = (8,)


def config_of(shape):
    layers, hidden, intermediate, experts, heads, kv_heads, value_heads, tied, tower = SHAPES[shape]
    text = {"vocab_size": VOCABULARY, "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "head_dim": 256, "full_attention_interval": 4, "linear_conv_kernel_dim": 4,
            "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
            "linear_num_value_heads": value_heads, "max_position_embeddings": 262144, "mtp_num_hidden_layers": 1,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25,
                                "mrope_interleaved": True, "mrope_section": [11, 11, 10]}}
    text |= ({"num_experts": experts, "num_experts_per_tok": 8, "moe_intermediate_size": intermediate,
              "shared_expert_intermediate_size": intermediate} if experts else {"intermediate_size": intermediate})
    vision = {"depth": tower[0], "hidden_size": tower[1], "intermediate_size": tower[2], "num_heads": tower[3],
              "out_hidden_size": hidden, "num_position_embeddings": 2304}
    return {"architectures": ["Qwen3_5MoeForConditionalGeneration" if experts else "Qwen3_5ForConditionalGeneration"],
            "text_config": text, "vision_config": vision, "tie_word_embeddings": tied}


class Fake:
    """The names, types and shapes of a published checkpoint. `forms` says for the parts "mlp" (experts too), "attention",
    "mtp" and "head" how their matrices are stored: bf16, fp8 (blocks), fp8_one, nvfp4 or packed_nvfp4."""

    def __init__(self, shape, **forms):
        self.shape, self.forms, self.tensors = shape, forms, {}
        self.layers, self.hidden, self.intermediate, self.experts, self.heads, self.kv_heads, self.value_heads, tied, tower = SHAPES[shape]
        self.add("model.language_model.embed_tokens.weight", "BF16", VOCABULARY, self.hidden)
        self.add("model.language_model.norm.weight", "BF16", self.hidden)
        if not tied:
            self.matrix("head", "lm_head", VOCABULARY, self.hidden)
        for layer in range(self.layers):
            self.layer(f"model.language_model.layers.{layer}.", layer % 4 == 3)
        self.draft_head()
        self.tower(*tower)

    def add(self, name, dtype, *shape):
        self.tensors[name] = (dtype, list(shape))

    def matrix(self, part, name, out, in_size):
        form = self.forms.get(part, "bf16")
        if form == "bf16":
            self.add(f"{name}.weight", "BF16", out, in_size)
        elif form == "fp8":
            self.add(f"{name}.weight", "F8_E4M3", out, in_size)
            self.add(f"{name}.weight_scale_inv", "BF16", -(-out // 128), -(-in_size // 128))
        elif form == "fp8_one":
            self.add(f"{name}.weight", "F8_E4M3", out, in_size)
            self.add(f"{name}.weight_scale", "F32")
            self.add(f"{name}.input_scale", "F32")
        elif form == "nvfp4":
            self.add(f"{name}.weight", "U8", out, in_size // 2)
            self.add(f"{name}.weight_scale", "F8_E4M3", out, in_size // 16)
            self.add(f"{name}.weight_scale_2", "F32")
            self.add(f"{name}.input_scale", "F32")
        else:
            self.add(f"{name}.weight_packed", "U8", out, in_size // 2)
            self.add(f"{name}.weight_scale", "F8_E4M3", out, in_size // 16)
            self.add(f"{name}.weight_global_scale", "F32", 1)
            self.add(f"{name}.input_global_scale", "F32", 1)

    def layer(self, prefix, full, part=None):
        self.add(prefix + "input_layernorm.weight", "BF16", self.hidden)
        self.add(prefix + "post_attention_layernorm.weight", "BF16", self.hidden)
        attention, mlp = part or "attention", part or "mlp"
        if full:
            own = prefix + "self_attn."
            self.matrix(attention, own + "q_proj", self.heads * 512, self.hidden)
            self.matrix(attention, own + "k_proj", self.kv_heads * 256, self.hidden)
            self.matrix(attention, own + "v_proj", self.kv_heads * 256, self.hidden)
            self.matrix(attention, own + "o_proj", self.hidden, self.heads * 256)
            self.add(own + "q_norm.weight", "BF16", 256)
            self.add(own + "k_norm.weight", "BF16", 256)
        else:
            own, values = prefix + "linear_attn.", 128 * self.value_heads
            self.matrix(attention, own + "in_proj_qkv", 4096 + values, self.hidden)
            self.matrix(attention, own + "in_proj_z", values, self.hidden)
            for name in ("in_proj_a", "in_proj_b"):
                self.add(f"{own}{name}.weight", "BF16", self.value_heads, self.hidden)
            self.add(own + "conv1d.weight", "BF16", 4096 + values, 1, 4)
            self.add(own + "A_log", "BF16", self.value_heads)
            self.add(own + "dt_bias", "BF16", self.value_heads)
            self.add(own + "norm.weight", "BF16", 128)
            self.matrix(attention, own + "out_proj", self.hidden, values)
        self.mlp(mlp, prefix + "mlp.")

    def gated(self, part, prefix):
        self.matrix(part, prefix + "gate_proj", self.intermediate, self.hidden)
        self.matrix(part, prefix + "up_proj", self.intermediate, self.hidden)
        self.matrix(part, prefix + "down_proj", self.hidden, self.intermediate)

    def mlp(self, part, prefix):
        if not self.experts:
            return self.gated(part, prefix)
        self.add(prefix + "gate.weight", "BF16", self.experts, self.hidden)
        self.add(prefix + "shared_expert_gate.weight", "BF16", 1, self.hidden)
        self.gated(part, prefix + "shared_expert.")
        if self.forms.get(part, "bf16") == "bf16":
            self.add(prefix + "experts.gate_up_proj", "BF16", self.experts, 2 * self.intermediate, self.hidden)
            self.add(prefix + "experts.down_proj", "BF16", self.experts, self.hidden, self.intermediate)
        else:
            for expert in range(self.experts):
                self.gated(part, f"{prefix}experts.{expert}.")

    def draft_head(self):
        self.add("mtp.fc.weight", "BF16", self.hidden, 2 * self.hidden)
        for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
            self.add(f"mtp.{name}.weight", "BF16", self.hidden)
        self.layer("mtp.layers.0.", True, "mtp")

    def affine(self, name, *shape):
        self.add(f"model.visual.{name}.weight", "BF16", *shape)
        self.add(f"model.visual.{name}.bias", "BF16", shape[0])

    def tower(self, depth, hidden, intermediate, _):
        self.affine("patch_embed.proj", hidden, 3, 2, 16, 16)
        self.add("model.visual.pos_embed.weight", "BF16", 2304, hidden)
        for block in range(depth):
            own = f"blocks.{block}."
            self.affine(own + "norm1", hidden)
            self.affine(own + "norm2", hidden)
            self.affine(own + "attn.qkv", 3 * hidden, hidden)
            self.affine(own + "attn.proj", hidden, hidden)
            self.affine(own + "mlp.linear_fc1", intermediate, hidden)
            self.affine(own + "mlp.linear_fc2", hidden, intermediate)
        self.affine("merger.norm", hidden)
        self.affine("merger.linear_fc1", 4 * hidden, 4 * hidden)
        self.affine("merger.linear_fc2", self.hidden, 4 * hidden)

    def write(self, folder):
        """A file as long as its header says, with a hole where the numbers would be."""
        header, end = {}, 0
        for name, (dtype, shape) in self.tensors.items():
            size = BYTES[dtype]
            for n in shape:
                size *= n
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
            end += size
        text = json.dumps(header).encode()
        with open(folder / "model.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + end)
        (folder / "config.json").write_text(json.dumps(config_of(self.shape)))


class Inspects(unittest.TestCase):
    def inspect(self, fake, *flags):
        with tempfile.TemporaryDirectory(prefix="sluice_audit_") as folder:
            fake.write(Path(folder))
            return self.inspect_folder(folder, fake, *flags)

    def inspect_folder(self, folder, fake, *flags):
        start = time.monotonic()
        done = subprocess.run([PROGRAM, "inspect", folder, "--json", *flags], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        print(f"{fake.shape} {fake.forms} {' '.join(flags)}: {len(fake.tensors)} tensors, {time.monotonic() - start:.1f} s", file=sys.stderr)
        return json.loads(done.stdout)


class Audit(Inspects):
    def passes(self, fake):
        result = self.inspect(fake)
        self.assertEqual(result["audit"], {"complete": True, "passed_over": []})
        self.assertEqual(sum(group["count"] for group in result["tensors"]), len(fake.tensors))
        self.assertIn("weights_bytes", result["memory"])
        return {group["format"] for group in result["tensors"]}

    def test_bf16_has_as_many_tensors_as_are_published(self):
        published = {"0.8b": 488, "9b": 775, "27b": 1199, "35b-a3b": 1045, "122b-a10b": 1183}
        for shape in SHAPES:
            fake = Fake(shape)
            self.assertEqual(len(fake.tensors), published[shape], shape)
            self.assertEqual(self.passes(fake), {"plain"})

    def test_fp8_in_blocks(self):
        for shape in SHAPES:
            fake = Fake(shape, mlp="fp8", attention="fp8", mtp="fp8")
            self.assertEqual(self.passes(fake), {"plain", "fp8"})
            if shape == "35b-a3b":
                self.assertEqual(len(fake.tensors), 64196)  # as published

    def test_nvfp4_of_both_kinds_and_mixed(self):
        for shape in SHAPES:
            self.assertEqual(self.passes(Fake(shape, mlp="nvfp4", attention="fp8_one", head="nvfp4")),
                             {"plain", "nvfp4", "fp8"})
        for shape in SHAPES:
            self.assertEqual(self.passes(Fake(shape, mlp="packed_nvfp4", attention="packed_nvfp4")), {"plain", "nvfp4"})

    def test_a_tensor_less_and_a_tensor_more_are_named(self):
        fake = Fake("0.8b", mlp="fp8")
        scale = "model.language_model.layers.7.mlp.up_proj.weight_scale_inv"
        kept = fake.tensors.pop(scale)
        problem = self.inspect(fake)["audit"]["problem"]
        self.assertIn("layers.7.mlp.up_proj.weight", problem)
        fake.tensors[scale] = kept
        fake.add("model.language_model.layers.7.mlp.up_proj.weight_scale_3", "F32")
        self.assertIn("weight_scale_3", self.inspect(fake)["audit"]["problem"])


class ParallelPlan(Inspects):
    """How the tensors are shared out, checked group by group against what the file holds."""

    FORMS = ({}, {"mlp": "fp8", "attention": "fp8", "mtp": "fp8"}, {"mlp": "nvfp4", "attention": "fp8_one", "head": "nvfp4"},
             {"mlp": "packed_nvfp4", "attention": "packed_nvfp4"})
    REFUSED = {("0.8b", "fp8", 8): "3584 rows, of which 448 a rank would cut blocks of 128"}

    def plan(self, shape, forms, ranks):
        return self.inspect(Fake(shape, **forms), "--tensor-parallel-size", str(ranks))["tensor_parallel"]

    def kept(self, group, ranks):
        """How often each element along the cut is kept, by all ranks together."""
        if "axis" not in group:
            return {sum(rank["tensors"] for rank in group["ranks"]) / group["count"]}
        times = [0] * group["shape"][group["axis"]]
        for rank in group["ranks"]:
            length = 0
            for begin, count in rank["runs"]:
                length += count
                for i in range(begin, begin + count):
                    times[i] += 1
            shape = list(group["shape"])
            shape[group["axis"]] = length
            self.assertEqual((rank["shape"], rank["tensors"]), (shape, group["count"]), group["name"])
        return set(times)

    def expect_covered(self, fake, plan, ranks):
        names = {}
        for name in fake.tensors:
            pattern = ".".join("*" if part.isdigit() else part for part in name.split("."))
            names[pattern] = names.get(pattern, 0) + 1
        bytes_of_ranks = [0] * ranks
        for group in plan["groups"]:
            names[group["name"]] -= group["count"]
            self.assertEqual(self.kept(group, ranks), {group["copies"]}, group["name"])
            self.assertNotEqual(group["reason"], "", group["name"])
            size = {"bfloat16": 2, "float32": 4, "float8_e4m3": 1, "uint8": 1}[group["dtype"]]
            for rank, kept in enumerate(group["ranks"]):
                elements = 1
                for n in kept["shape"]:
                    elements *= n
                self.assertEqual(kept["bytes"], kept["tensors"] * elements * size, group["name"])
                bytes_of_ranks[rank] += kept["bytes"]
        self.assertEqual(set(names.values()), {0})
        self.assertEqual(bytes_of_ranks, plan["bytes_per_rank"])

    def expect_plan(self, folder, fake, ranks):
        plan = self.inspect_folder(folder, fake, "--tensor-parallel-size", str(ranks))["tensor_parallel"]
        refused = self.REFUSED.get((fake.shape, fake.forms.get("mlp"), ranks))
        self.assertEqual(plan["possible"], refused is None, plan.get("problem"))
        if refused:
            self.assertIn(refused, plan["problem"])
            self.assertIn("4 ranks would do", plan["problem"])
        else:
            self.expect_covered(fake, plan, ranks)

    def test_every_tensor_is_kept_once_or_as_often_as_the_plan_says(self):
        for shape in SHAPES:
            for forms in self.FORMS:
                fake = Fake(shape, **forms)
                with tempfile.TemporaryDirectory(prefix="sluice_audit_") as folder:
                    fake.write(Path(folder))
                    for ranks in RANKS:
                        with self.subTest(shape, forms=forms, ranks=ranks):
                            self.expect_plan(folder, fake, ranks)

    def group(self, plan, name):
        return next(group for group in plan["groups"] if group["name"].endswith(name))

    def test_experts_of_blocks_that_a_cut_would_go_through_stay_whole(self):
        plan = self.plan("35b-a3b", self.FORMS[1], 8)
        experts = self.group(plan, "layers.*.mlp.experts.*.down_proj.weight")
        self.assertEqual((experts["split"], [rank["tensors"] for rank in experts["ranks"]]), ("experts", [40 * 32] * 8))
        self.assertEqual(self.group(plan, "mlp.shared_expert.down_proj.weight")["split"], "replicated")
        self.assertEqual(self.group(self.plan("35b-a3b", self.FORMS[1], 4), "experts.*.down_proj.weight")["split"], "columns")
        self.assertEqual(self.group(self.plan("35b-a3b", self.FORMS[3], 8), "experts.*.down_proj.weight_packed")["split"],
                         "columns")

    def test_sizes_that_are_not_planned_for(self):
        for arguments, message in ((("inspect", "--tensor-parallel-size", "3"), "expected 1, 2, 4 or 8"),
                                   (("logits", "--ids", "1", "--out", "x", "-tp", "2"), "not in this build")):
            done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
