"""Reads what `sluice quantize` writes with numpy and the package gguf, and writes the numbers it stands for as float32."""
import json
import struct
from pathlib import Path

import gguf
import numpy as np

import gguf_file
import safetensors_file

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
E2M1 = np.concatenate([E2M1, -E2M1])


def e4m3_table():
    bits = np.arange(256)
    exponent, mantissa = bits >> 3 & 15, (bits & 7).astype(np.float64)
    values = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10))
    values[(bits & 0x7F) == 0x7F] = np.nan
    return np.where(bits >= 128, -values, values).astype(np.float32)


E4M3 = e4m3_table()


def nibbles(packed):
    """[out, bytes] as [out, 2 * bytes], the low one first."""
    return np.stack([packed & 15, packed >> 4], -1).reshape(packed.shape[0], -1)


def as_float(dtype, values):
    return E4M3[values] if dtype == "F8_E4M3" else gguf_file.as_float(dtype, values)


def of_nvfp4(codes, scales, factor):
    return E2M1[nibbles(codes)] * np.repeat(scales, 16, 1) * factor


def of_int4(words, scales):
    codes = nibbles(np.ascontiguousarray(words).view(np.uint8).reshape(words.shape[0], -1)).astype(np.float32) - 8
    return codes * np.repeat(scales, codes.shape[1] // scales.shape[1], 1)


def of_fp8(codes, scales):
    blocks = np.repeat(np.repeat(scales, 128, 0), 128, 1)
    return E4M3[codes] * blocks[: codes.shape[0], : codes.shape[1]]


def folder_values(folder):
    """Names to float32 arrays; the matrices under NAME.weight."""
    raw = safetensors_file.read_arrays(folder)
    values = {}
    for name, (dtype, stored) in raw.items():
        base = name.removesuffix("_packed").removesuffix(".weight")
        beside = {suffix: as_float(*raw[f"{base}.{suffix}"]) for suffix in
                  ("weight_scale", "weight_scale_2", "weight_scale_inv") if f"{base}.{suffix}" in raw}
        if name.endswith(".weight_packed"):
            values[f"{base}.weight"] = of_int4(stored, beside["weight_scale"])
        elif name.endswith(".weight") and "weight_scale_2" in beside:
            values[name] = of_nvfp4(stored, beside["weight_scale"], beside["weight_scale_2"])
        elif name.endswith(".weight") and "weight_scale_inv" in beside:
            values[name] = of_fp8(stored, beside["weight_scale_inv"])
        elif name.rsplit(".", 1)[-1] not in ("weight_scale", "weight_scale_2", "weight_scale_inv", "weight_shape"):
            values[name] = as_float(dtype, stored)
    return values


def gguf_tensors(path):
    """ggml's names to (type, float32 array)."""
    tensors = {}
    for tensor in gguf.GGUFReader(path).tensors:
        shape = [int(n) for n in reversed(tensor.shape)]
        tensors[tensor.name] = (tensor.tensor_type.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(shape))
    return tensors


def grouped(source, values, axis, per_head):
    """The inverse of Source.tiled."""
    shape = list(values.shape)
    split = [source.value_heads // source.key_heads, source.key_heads, per_head]
    return np.swapaxes(values.reshape(shape[:axis] + split + shape[axis + 1 :]), axis, axis + 1).reshape(shape)


def published(source, name, values):
    """The inverse of Source.converted."""
    keys = 2 * source.key_heads * source.key_dim
    is_norm = name.endswith("norm.weight") or name.startswith("mtp.pre_fc_norm")
    if is_norm and not name.endswith("linear_attn.norm.weight"):
        return values - 1
    if name.endswith("A_log"):
        return np.log(-grouped(source, values, 0, 1))
    if name.endswith("dt_bias") or ".in_proj_a." in name or ".in_proj_b." in name:
        return grouped(source, values, 0, 1)
    if ".in_proj_qkv." in name or ".conv1d." in name:
        values = np.concatenate([values[:keys], grouped(source, values[keys:], 0, source.value_dim)])
        return values[:, None, :] if ".conv1d." in name else values
    if ".in_proj_z." in name:
        return grouped(source, values, 0, source.value_dim)
    return grouped(source, values, 1, source.value_dim) if ".out_proj." in name else values


def gguf_values(path, folder):
    """Published names to float32 arrays, of a file that was made of the folder."""
    source = gguf_file.Source(folder)
    tensors = {name: values for name, (_, values) in gguf_tensors(path).items()}
    for name in [n for n in tensors if n.endswith("ffn_gate_exps.weight")]:
        up = tensors.pop(name.replace("gate", "up"))
        tensors[name.replace("gate", "gate_up")] = np.concatenate([tensors.pop(name), up], 1)
    values = {}
    for name in source.tensors:
        if (ggml := source.ggml_name(name)) in tensors:
            values[name] = published(source, name, tensors.pop(ggml))
    assert not tensors, list(tensors)
    return values


def split_experts(tensors):
    """The same with each expert's matrices by themselves."""
    values = {}
    for name, array in tensors.items():
        if ".experts." not in name or array.ndim < 3:
            values[name] = array
            continue
        prefix, projection = name.rsplit(".", 1)
        for expert, matrix in enumerate(array):
            halves = np.split(matrix, 2) if projection == "gate_up_proj" else [matrix]
            for part, half in zip(["gate_proj", "up_proj"] if len(halves) == 2 else [projection], halves):
                values[f"{prefix}.{expert}.{part}.weight"] = half
    return values


def write_f32(folder, config, tensors):
    """A folder with these numbers as they are."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    header, end = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [end, end + 4 * values.size]}
        end += 4 * values.size
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(np.ascontiguousarray(values, np.float32).tobytes())
