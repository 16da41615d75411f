"""A small reader and writer of safetensors files: names to (dtype, shape, values)."""
import array
import json
import pathlib
import struct

CODES = {"F32": "f", "I64": "q", "I32": "i"}
STORED = {"F32": "f4", "F16": "f2", "BF16": "u2", "F8_E4M3": "u1", "U8": "u1", "I32": "i4", "I64": "i8"}


def read_bytes(path):
    """Names to (dtype, shape, bytes)."""
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["dtype"], entry["shape"], data[8 + size + begin : 8 + size + end])
    return tensors


def read(path):
    return {name: (dtype, shape, array.array(CODES[dtype], data)) for name, (dtype, shape, data) in read_bytes(path).items()}


def read_arrays(path):
    """Names to (dtype, numpy array as stored), of a file or of all model*.safetensors of a folder."""
    import numpy  # not there for tests that need the standard library alone

    path = pathlib.Path(path)
    files = sorted(path.glob("model*.safetensors")) if path.is_dir() else [path]
    return {name: (dtype, numpy.frombuffer(data, STORED[dtype]).reshape(shape))
            for file in files for name, (dtype, shape, data) in read_bytes(file).items()}


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
