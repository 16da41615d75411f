"""A small reader and writer of safetensors files: names to (dtype, shape, values)."""
import array
import json
import struct

CODES = {"F32": "f", "I64": "q", "I32": "i"}


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = array.array(CODES[entry["dtype"]])
        values.frombytes(data[8 + size + begin : 8 + size + end])
        tensors[name] = (entry["dtype"], entry["shape"], values)
    return tensors


def write(path, tensors):
    header, body = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        bytes_of = array.array(CODES[dtype], values).tobytes()
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(bytes_of)]}
        body += bytes_of
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def relative_error(found, expected):
    """Relative L2 distance of two equally long lists of numbers."""
    assert len(found) == len(expected), (len(found), len(expected))
    difference = sum((a - b) ** 2 for a, b in zip(found, expected))
    return (difference / sum(b * b for b in expected)) ** 0.5
