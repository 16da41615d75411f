#!/usr/bin/env python3
"""Makes tests/data/golden/text-yarn-bias: a random text-only checkpoint with YaRN and attention biases, and what
HF transformers (5.17, with torch) answers for it in float32. Usage: make_golden.py OUT_DIRECTORY"""
import sys

import torch
from safetensors.torch import save_file
from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

out = sys.argv[1]
torch.manual_seed(20261201)
config = Qwen3_5TextConfig(
    vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=2,
    num_key_value_heads=1, head_dim=256, linear_num_key_heads=1, linear_num_value_heads=2,
    layer_types=["full_attention", "linear_attention", "full_attention"], attention_bias=True,
    tie_word_embeddings=True, max_position_embeddings=512, eos_token_id=318,
    rope_parameters={"rope_type": "yarn", "rope_theta": 10000000, "partial_rotary_factor": 0.25, "factor": 4.0,
                     "original_max_position_embeddings": 128, "beta_fast": 8.0, "beta_slow": 0.5,
                     "mrope_section": [11, 11, 10], "mrope_interleaved": True})
config.architectures = ["Qwen3_5ForCausalLM"]
model = Qwen3_5ForCausalLM(config).eval()
with torch.no_grad():
    for name, parameter in model.named_parameters():
        scale = 0.5 if parameter.dim() == 1 else 0.6 / parameter.shape[-1] ** 0.5 * 2
        if "embed_tokens" in name:
            scale = 1.0
        noise = torch.randn_like(parameter) * scale
        parameter.copy_((noise + (1.0 if name.endswith("linear_attn.norm.weight") else 0.0)).bfloat16().float())
model = model.float()

expected = {}
with torch.no_grad():
    for length in (1, 5, 64, 200):
        ids = torch.randint(0, 300, (1, length))
        expected[f"ids.{length}"] = ids[0]
        logits = model(input_ids=ids).logits[0].float()
        expected[f"logits.{length}"] = logits[-4:].contiguous()
tensors = {name: value.bfloat16().contiguous() for name, value in model.state_dict().items() if name != "lm_head.weight"}
save_file(tensors, f"{out}/model.safetensors", metadata={"format": "pt"})
save_file(expected, f"{out}/expected.safetensors")
config.save_pretrained(out)
