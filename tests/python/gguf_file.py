"""Writes checkpoints of the family as GGUF files, with the changes that llama.cpp's converter makes to them."""
import json
from pathlib import Path

import gguf
import numpy as np

import safetensors_file

MODEL = {
    "model.language_model.embed_tokens.weight": "token_embd.weight",
    "model.language_model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
LAYER = {
    "input_layernorm.weight": "attn_norm.weight",
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "linear_attn.in_proj_qkv.weight": "attn_qkv.weight",
    "linear_attn.in_proj_z.weight": "attn_gate.weight",
    "linear_attn.in_proj_a.weight": "ssm_alpha.weight",
    "linear_attn.in_proj_b.weight": "ssm_beta.weight",
    "linear_attn.conv1d.weight": "ssm_conv1d.weight",
    "linear_attn.A_log": "ssm_a",
    "linear_attn.dt_bias": "ssm_dt.bias",
    "linear_attn.norm.weight": "ssm_norm.weight",
    "linear_attn.out_proj.weight": "ssm_out.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
    "mlp.gate.weight": "ffn_gate_inp.weight",
    "mlp.experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "mlp.experts.down_proj": "ffn_down_exps.weight",
    "mlp.shared_expert_gate.weight": "ffn_gate_inp_shexp.weight",
    "mlp.shared_expert.gate_proj.weight": "ffn_gate_shexp.weight",
    "mlp.shared_expert.up_proj.weight": "ffn_up_shexp.weight",
    "mlp.shared_expert.down_proj.weight": "ffn_down_shexp.weight",
}
DRAFT_HEAD = {
    "mtp.fc.weight": "nextn.eh_proj.weight",
    "mtp.pre_fc_norm_embedding.weight": "nextn.enorm.weight",
    "mtp.pre_fc_norm_hidden.weight": "nextn.hnorm.weight",
    "mtp.norm.weight": "nextn.shared_head_norm.weight",
}


def as_float(dtype, values):
    if dtype == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32)


def read_safetensors(folder):
    """Names to float32 arrays, of all files in the folder."""
    return {name: as_float(dtype, values) for name, (dtype, values) in safetensors_file.read_arrays(folder).items()}


class Source:
    """A checkpoint's text part and what its config says."""

    def __init__(self, folder):
        whole = json.loads((Path(folder) / "config.json").read_text())
        self.config = whole["text_config"]
        self.key_heads = self.config["linear_num_key_heads"]
        self.value_heads = self.config["linear_num_value_heads"]
        self.key_dim = self.config["linear_key_head_dim"]
        self.value_dim = self.config["linear_value_head_dim"]
        self.layers = self.config["num_hidden_layers"]
        self.tensors = {}
        for name, values in read_safetensors(folder).items():
            if not name.startswith("model.visual."):
                self._add(name, values)

    def _add(self, name, values):
        """Packed projections are taken apart: rows [q | k | v | z] and [b | a]."""
        if "in_proj_qkvz" in name:
            channels = 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim
            self.tensors[name.replace("in_proj_qkvz", "in_proj_qkv")] = values[:channels]
            self.tensors[name.replace("in_proj_qkvz", "in_proj_z")] = values[channels:]
        elif "in_proj_ba" in name:
            self.tensors[name.replace("in_proj_ba", "in_proj_b")] = values[: self.value_heads]
            self.tensors[name.replace("in_proj_ba", "in_proj_a")] = values[self.value_heads :]
        else:
            self.tensors[name] = values

    def has_draft_head(self):
        return "mtp.fc.weight" in self.tensors

    def tiled(self, values, axis, per_head):
        """Heads in the order that ggml's broadcast has: the first of each key head, then the second, ..."""
        shape = list(values.shape)
        groups = [self.key_heads, self.value_heads // self.key_heads, per_head]
        split = values.reshape(shape[:axis] + groups + shape[axis + 1 :])
        return np.swapaxes(split, axis, axis + 1).reshape(shape)

    def converted(self, name, values):
        keys = 2 * self.key_heads * self.key_dim
        is_norm = name.endswith("norm.weight") or name.startswith("mtp.pre_fc_norm")
        if is_norm and not name.endswith("linear_attn.norm.weight"):
            return values + 1
        if name.endswith("A_log"):
            return -np.exp(self.tiled(values, 0, 1))
        if name.endswith("dt_bias"):
            return self.tiled(values, 0, 1)
        if ".conv1d." in name:
            values = values.reshape(values.shape[0], -1)
        if ".in_proj_qkv." in name or ".conv1d." in name:
            return np.concatenate([values[:keys], self.tiled(values[keys:], 0, self.value_dim)])
        if ".in_proj_z." in name:
            return self.tiled(values, 0, self.value_dim)
        if ".in_proj_a." in name or ".in_proj_b." in name:
            return self.tiled(values, 0, 1)
        if ".out_proj." in name:
            return self.tiled(values, 1, self.value_dim)
        return values

    def ggml_name(self, name):
        if name in MODEL:
            return MODEL[name]
        if name in DRAFT_HEAD:
            return f"blk.{self.layers}.{DRAFT_HEAD[name]}"
        if name.startswith("mtp.layers."):
            index, rest = name.removeprefix("mtp.layers.").split(".", 1)
            return f"blk.{self.layers + int(index)}.{LAYER[rest]}"
        index, rest = name.removeprefix("model.language_model.layers.").split(".", 1)
        return f"blk.{index}.{LAYER[rest]}"

    def write_keys(self, writer):
        config, rope = self.config, self.config["rope_parameters"]
        drafts = 1 if self.has_draft_head() else 0
        writer.add_block_count(self.layers + drafts)
        if drafts:
            writer.add_nextn_predict_layers(drafts)
        writer.add_context_length(config["max_position_embeddings"])
        writer.add_embedding_length(config["hidden_size"])
        writer.add_head_count(config["num_attention_heads"])
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_rope_freq_base(rope["rope_theta"])
        writer.add_rope_dimension_count(int(config["head_dim"] * rope["partial_rotary_factor"]))
        writer.add_rope_dimension_sections(rope["mrope_section"] + [0])
        writer.add_ssm_conv_kernel(config["linear_conv_kernel_dim"])
        writer.add_ssm_state_size(self.key_dim)
        writer.add_ssm_group_count(self.key_heads)
        writer.add_ssm_time_step_rank(self.value_heads)
        writer.add_ssm_inner_size(self.value_heads * self.value_dim)
        full = [kind == "full_attention" for kind in config["layer_types"]]
        writer.add_array(f"{writer.arch}.attention.recurrent_layers", [not f for f in full] + [False] * drafts)
        if "num_experts" in config:
            writer.add_expert_count(config["num_experts"])
            writer.add_expert_used_count(config["num_experts_per_tok"])
            writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
            writer.add_expert_shared_feed_forward_length(config["shared_expert_intermediate_size"])
        else:
            writer.add_feed_forward_length(config["intermediate_size"])


def write_tokenizer(writer, folder, vocabulary_size, pre="qwen35"):
    """tokenizer.json and the chat template of a folder, as tokenizer.ggml.*."""
    whole = json.loads((Path(folder) / "tokenizer.json").read_text())
    tokens = [f"[PAD{i}]" for i in range(vocabulary_size)]
    types = [gguf.TokenType.UNUSED] * vocabulary_size
    for text, index in whole["model"]["vocab"].items():
        tokens[index], types[index] = text, gguf.TokenType.NORMAL
    for token in whole["added_tokens"]:
        tokens[token["id"]] = token["content"]
        types[token["id"]] = gguf.TokenType.CONTROL if token["special"] else gguf.TokenType.USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in whole["model"]["merges"]])
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_pad_token_id(tokens.index("<|endoftext|>"))
    writer.add_add_bos_token(False)
    template = Path(folder) / "chat_template.jinja"
    if template.exists():
        writer.add_chat_template(template.read_text())


BLOCKS = ("Q8_0", "Q4_0", "Q5_1", "Q4_1")


def block_type_of(name):
    """Neighbours in a stack get different ones."""
    return gguf.GGMLQuantizationType[BLOCKS[sum(name.encode()) % len(BLOCKS)]]


def write_gguf(path, folder, matrices="bf16", experts="fused", tokenizer=False, split_max_tensors=0, rename=None):
    """Matrices of two and three dimensions are stored as bf16, f16 or f32, as "blocks" of several types, or as the
    float32 that those "blocks_as_f32" stand for; everything else as f32. Experts are "fused" (gate and up in one
    tensor) or "apart". `rename` changes ggml's names."""
    source = Source(folder)
    arch = "qwen35moe" if "num_experts" in source.config else "qwen35"
    writer = gguf.GGUFWriter(path, arch, split_max_tensors=split_max_tensors)
    source.write_keys(writer)
    if tokenizer:
        write_tokenizer(writer, folder, source.config["vocab_size"])

    def add(name, values):
        values = np.ascontiguousarray(values, np.float32)
        kept = values.ndim < 2 or name.endswith("ssm_conv1d.weight")
        name = rename(name) if rename else name
        if kept or matrices == "f32":
            writer.add_tensor(name, values)
        elif matrices.startswith("blocks"):
            kind = block_type_of(name)
            packed = gguf.quants.quantize(values, kind)
            if matrices == "blocks":
                writer.add_tensor(name, packed, raw_dtype=kind)
            else:
                writer.add_tensor(name, gguf.quants.dequantize(packed, kind).reshape(values.shape))
        elif matrices == "f16":
            writer.add_tensor(name, values.astype(np.float16))
        else:
            packed = gguf.quants.quantize(values, gguf.GGMLQuantizationType.BF16)
            writer.add_tensor(name, packed, raw_dtype=gguf.GGMLQuantizationType.BF16)

    for name, values in source.tensors.items():
        values, ggml = source.converted(name, values), source.ggml_name(name)
        if ggml.endswith("ffn_gate_up_exps.weight") and experts == "apart":
            half = values.shape[1] // 2
            add(ggml.replace("gate_up", "gate"), values[:, :half])
            add(ggml.replace("gate_up", "up"), values[:, half:])
        else:
            add(ggml, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


MERGER = {"merger.norm": "v.post_ln", "merger.linear_fc1": "mm.0", "merger.linear_fc2": "mm.2"}


def vision_names(folder):
    """Published names of the picture tower to llama.cpp's, without .weight and .bias."""
    config = json.loads((Path(folder) / "config.json").read_text())["vision_config"]
    table = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, config["depth"])

    def stored(name):
        stem = name.removeprefix("model.visual.").rsplit(".", 1)[0]
        return MERGER.get(stem) or table.get_name(f"visual.{stem}")

    return config, stored


def write_mmproj(path, folder, matrices="bf16", projector=gguf.VisionProjectorType.QWEN3VL, leave_out=(), extra=None):
    """The picture tower of a folder as llama.cpp's converter writes it: matrices in bf16 or f16, all else in f32."""
    config, stored = vision_names(folder)
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_type(gguf.GGUFType.MMPROJ)
    writer.add_clip_has_vision_encoder(True)
    writer.add_clip_projector_type(projector)
    writer.add_vision_use_gelu(True)
    writer.add_vision_image_size(int(config["num_position_embeddings"] ** 0.5) * config["patch_size"])
    writer.add_vision_patch_size(config["patch_size"])
    writer.add_vision_embedding_length(config["hidden_size"])
    writer.add_vision_feed_forward_length(config["intermediate_size"])
    writer.add_vision_block_count(config["depth"])
    writer.add_vision_head_count(config["num_heads"])
    writer.add_vision_projection_dim(config["out_hidden_size"])
    writer.add_vision_spatial_merge_size(config["spatial_merge_size"])
    writer.add_vision_attention_layernorm_eps(1e-6)
    writer.add_vision_image_mean([0.5, 0.5, 0.5])
    writer.add_vision_image_std([0.5, 0.5, 0.5])
    writer.add_vision_is_deepstack_layers([False] * config["depth"])

    def add(name, values):
        values = np.ascontiguousarray(values, np.float32)
        if name in leave_out:
            return
        if values.ndim < 2 or name == "v.position_embd.weight":
            writer.add_tensor(name, values)
        elif matrices == "f16":
            writer.add_tensor(name, values.astype(np.float16))
        else:
            packed = gguf.quants.quantize(values, gguf.GGMLQuantizationType.BF16)
            writer.add_tensor(name, packed, raw_dtype=gguf.GGMLQuantizationType.BF16)

    for name, values in read_safetensors(folder).items():
        if not name.startswith("model.visual."):
            continue
        kind = name.rsplit(".", 1)[1]
        if values.ndim == 5:
            add("v.patch_embd.weight", values[:, :, 0])
            add("v.patch_embd.weight.1", values[:, :, 1])
        else:
            add(f"{stored(name)}.{kind}", values)
    for name, values in (extra or {}).items():
        add(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
