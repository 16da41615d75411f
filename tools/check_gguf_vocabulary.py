"""Runs llama.cpp's cases for the family's vocabulary through `sluice tokenize`: check_gguf_vocabulary.py PROGRAM [FOLDER].

FOLDER keeps what is fetched (the sources of llama-cpp-python, from PyPI); without it, a temporary one is used. Texts that
NFC changes are compared with themselves after NFC: the family's tokenizer normalizes, llama.cpp does not."""
import json
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
from pathlib import Path

SEPARATOR = "\n__ggml_vocab_test__\n"
FILES = ("ggml-vocab-qwen35.gguf", "ggml-vocab-qwen35.gguf.inp", "ggml-vocab-qwen35.gguf.out")


def fetch(folder):
    """The three files of the newest release, in the folder."""
    if all((folder / name).exists() for name in FILES):
        return
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                    "--no-binary", "llama-cpp-python", "llama-cpp-python", "-d", folder], check=True)
    with tarfile.open(next(folder.glob("llama_cpp_python-*.tar.gz"))) as archive:
        for member in archive:
            name = member.name.rsplit("/", 1)[-1]
            if name in FILES and "/models/" in member.name:
                (folder / name).write_bytes(archive.extractfile(member).read())


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], stdin=subprocess.DEVNULL, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{arguments[0]} failed: {done.stderr}")
    return done.stdout


def main(program, folder):
    fetch(folder)
    model, inputs, outputs = (folder / name for name in FILES)
    cases = inputs.read_bytes().decode().split(SEPARATOR)
    expected = [[int(word) for word in line.split()] for line in outputs.read_text().split("\n")]
    wrong = 0

    def tokenize(text):
        file = folder / "case.txt"
        file.write_bytes(text.encode())
        return json.loads(run(program, "tokenize", model, "--file", file, "--json"))["ids"]

    for number, (case, ids) in enumerate(zip(cases, expected)):
        found, normal = tokenize(case), unicodedata.normalize("NFC", case)
        if normal != case:
            ids = tokenize(normal)
        if found != ids:
            wrong += 1
            print(f"case {number}, {case!r}: found {found}, expected {ids}")
    messages = folder / "messages.json"
    messages.write_text(json.dumps([{"role": "user", "content": "Hello"}]))
    if "<|im_start|>user\nHello<|im_end|>" not in run(program, "template", model, "--messages", messages):
        wrong += 1
        print("the template of the file does not render the user's turn")
    print(f"{len(cases)} cases and a template, {wrong} wrong")
    return 1 if wrong or len(cases) < 2 else 0


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(main(sys.argv[1], Path(sys.argv[2])))
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(main(sys.argv[1], Path(scratch)))
