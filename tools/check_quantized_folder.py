#!/usr/bin/env python3
"""Reads a folder that `sluice quantize` wrote from models/tiny with HF transformers, feeds it the text chats of the reference
with their answers, and says at how many places it chooses the reference's token.

usage: check_quantized_folder.py FOLDER... (needs torch and transformers; compressed-tensors for int4)"""
import json
import pathlib
import sys

import torch
import transformers

CHATS = pathlib.Path(__file__).resolve().parent.parent / "models/tiny/expected/chats.json"
REAL_TOKENS = 1677  # the rest of the vocabulary is padding


def load(folder):
    method = json.loads((folder / "config.json").read_text()).get("quantization_config", {}).get("quant_method")
    options = {}
    if method == "fp8":
        options["quantization_config"] = transformers.FineGrainedFP8Config(dequantize=True)
    elif method == "compressed-tensors":
        options["quantization_config"] = transformers.CompressedTensorsConfig(run_compressed=False)
    model, report = transformers.AutoModelForImageTextToText.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True, **options)
    left = {key: sorted(name for name in names if not str(name).startswith("mtp.")) for key, names in report.items() if names}
    print(f"{folder.name}: {method}, loaded; left over: {({k: v[:4] for k, v in left.items() if v}) or 'nothing but mtp'}")
    return model.eval()


def agreement(model):
    same = places = 0
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device)
    for chat in json.loads(CHATS.read_text()):
        if chat["media"]:
            continue
        ids = torch.tensor([chat["prompt_ids"] + chat["output_ids"]], device=device)
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0, :, :REAL_TOKENS]
        count = len(chat["output_ids"])
        best = logits[-count - 1:-1].argmax(-1).tolist()
        same += sum(a == b for a, b in zip(best, chat["output_ids"]))
        places += count
    return same, places


if __name__ == "__main__":
    for name in sys.argv[1:]:
        same, places = agreement(load(pathlib.Path(name)))
        print(f"{name}: {same} of {places} places ({100 * same / places:.2f}%)")
