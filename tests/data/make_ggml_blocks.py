#!/usr/bin/env python3
"""Makes tests/data/ggml_blocks.safetensors: random blocks of every type of ggml that the package gguf (0.19) can read, and
what it makes of them, bit for bit. Usage: pip install gguf numpy safetensors; make_ggml_blocks.py OUT_FILE

TYPE.blocks   uint8 [blocks, bytes]      random, but for the scales
TYPE.values   float32 [blocks, values]   gguf.quants.dequantize of them
TYPE.grid     int8 [points, size]        the whole codebook, for types that have one
numbers       float32 [rows, 32]
TYPE.numbers  uint8 [rows, bytes]        gguf.quants.quantize of them, for two types
"""
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type, quants
from safetensors.numpy import save_file

# Where the float16 scales of a block are. IQ1_M is apart.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ1_S": [0], "IQ1_M": [], "IQ2_XXS": [0], "IQ2_XS": [0],
          "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0], "IQ4_NL": [0], "IQ4_XS": [0], "TQ1_0": [52], "TQ2_0": [64],
          "MXFP4": [], "NVFP4": []}
GRIDS = ["IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"]
# Both zeros, the smallest and the largest subnormal, the largest number.
SPECIAL_SCALES = np.array([0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff], dtype=np.uint16)

random = np.random.default_rng(20261203)


def scales(count, shift):
    """float16 bits: ordinary ones of both signs, and the special ones first, in an order of their own for every shift."""
    ordinary = random.normal(size=count) * np.exp(random.normal(size=count)) * 0.01
    bits = ordinary.astype(np.float16).view(np.uint16)
    bits[:len(SPECIAL_SCALES)] = np.roll(SPECIAL_SCALES, shift)
    return bits


def blocks_of(name, count):
    _, size = GGML_QUANT_SIZES[Type[name]]
    blocks = random.integers(0, 256, size=(count, size), dtype=np.uint8)
    for shift, offset in enumerate(SCALES[name]):
        blocks[:, offset:offset + 2] = scales(count, shift).view(np.uint8).reshape(count, 2)
    if name == "IQ1_M":  # the scale in the high four bits of four numbers
        d = scales(count, 0)
        parts = blocks[:, 48:].copy().view(np.uint16)
        for i, shift in enumerate([0, 4, 8, 12]):
            parts[:, i] = parts[:, i] & 0x0fff | (d >> shift & 15) << 12
        blocks[:, 48:] = parts.view(np.uint8)
    if name == "MXFP4":  # powers of two: subnormal, ordinary, the largest
        blocks[:, 0] = [0, 1, 2, 3, 254, 255] + list(range(118, 118 + count - 6))
    if name == "NVFP4":  # zero, subnormal, the largest, the code of NaN, and with a sign
        blocks[:2, :4] = [[0x00, 0x01, 0x07, 0x7e], [0x7f, 0xff, 0x80, 0x83]]
    return blocks


tensors = {}
for name in SCALES:
    count = 10 if GGML_QUANT_SIZES[Type[name]][0] == 256 else 16
    blocks = blocks_of(name, count)
    with np.errstate(over="ignore"):
        values = quants.dequantize(blocks, Type[name])
    assert values.dtype == np.float32 and not np.isnan(values).any(), name
    tensors[f"{name}.blocks"] = blocks
    tensors[f"{name}.values"] = values
for name in GRIDS:
    kind = getattr(quants, name)
    kind.init_grid()
    tensors[f"{name}.grid"] = kind.grid.reshape(kind.grid_shape).astype(np.int8)

numbers = random.normal(size=(48, 32)) * np.exp2(random.integers(-12, 8, size=(48, 1)))
numbers[0] = 0.0
numbers[1] = 3.0
numbers[2] = -0.7
numbers[3] = np.arange(32) * 8 - 121.5  # halves: ties of Q8_0, whose scale is 1
numbers[3, 0] = -127.0
numbers[4] = np.arange(32) / 4 - 4.0  # ties of Q4_0
numbers[4, 5] = 8.0
numbers[5, :2] = [100.0, -100.0]  # of two extremes the first one counts
numbers[6, :2] = [-100.0, 100.0]
numbers[5:7, 2:] = random.normal(size=(2, 30))
numbers[7] *= 1e-6 / np.abs(numbers[7]).max()  # scales that are subnormal
numbers[8] *= 1e-35 / np.abs(numbers[8]).max()  # or nothing in float16
numbers[9] *= 5e5 / np.abs(numbers[9]).max()  # or nearly too large
numbers[10, 3:] = 0.0
tensors["numbers"] = numbers = numbers.astype(np.float32)
for name in ["Q4_0", "Q8_0"]:
    tensors[f"{name}.numbers"] = quants.quantize(numbers, Type[name])
save_file(tensors, sys.argv[1])
