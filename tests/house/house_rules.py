"""The rules of the house, checked on a tree: house_rules.py ROOT. Prints `file:line: rule: what is wrong`; exit code 1."""
import os
import re
import subprocess
import sys
from pathlib import Path

MAX_LINES = 500
LONG_FILES = {}  # path: why it may be longer than that
MAX_TRACKED_BYTES = 45 * 2**20

# Folder of src: what its files may include, folders or single files. None: everything.
MAY_INCLUDE = {
    "base": [],
    "tensor": ["base"],
    "weights": ["base", "tensor"],
    "ops": ["base", "tensor", "weights"],
    "cpu": ["base", "tensor", "weights", "ops"],
    "cuda": ["base", "tensor", "weights", "ops"],
    "comm": ["base", "tensor", "weights", "ops"],
    "models": ["base", "tensor", "weights", "ops"],
    "cache": ["base", "tensor", "ops/views.h"],
    "engine": ["base", "tensor", "weights", "ops", "models", "cache"],
    "text": ["base", "engine/request.h"],
    "vision": ["base"],
    "server": ["base", "tensor", "weights", "ops", "models", "cache", "engine", "text", "vision"],
    "apps": None,
}

FORMAT_NAME = re.compile(
    r"(?<![a-z0-9])(fp8|nvfp4|mxfp[48]|int4|w4a16|awq|gptq|i?q[1-8]_(k|xxs|xs|s|m|nl|[01])|q[2-6]_k_[sml])(?![a-z0-9])", re.I)
# apps names formats and models in help texts and as benchmark shapes.
FORMAT_PLACES = re.compile(r"src/(weights/(formats|encode|gguf_|ggml)|[^/]+/(linear|moe)|apps/)")
MODEL_NAME = re.compile(r"qwen", re.I)
MODEL_PLACES = re.compile(r"src/(models/|weights/gguf_|text/tool_calls|apps/)")
BACKEND_CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*(CUDA|NVCC|HIP|ROCM|METAL|SLUICE_CPU|BACKEND)")
GETENV = re.compile(r"\b(secure_)?getenv\b")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
HOME_PATH = re.compile(r"(?<![\w.\-/])/(home|Users|root|work|tmp/h)/\w")
SNAKE_CASE = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*")
FREE_NAMES = {"CMakeLists.txt", "README.md"}

CODE = (".h", ".cpp", ".cu", ".cuh")
TEXT = CODE + (".py", ".cmake", ".md", ".txt", ".json", "/dev", "/.ci/run")
CODE_FOLDERS = ("src", "tests", "bench", "fuzz", "include")
DATA = ("tests/data/", "fuzz/corpus/", "models/", "bench/results/")
SPELLS_THE_RULES = "tests/house/"


class Tree:
    def __init__(self, root):
        self.root = Path(root)
        self.files = sorted(p for p in self._tracked() if (self.root / p).is_file())
        self.written = [p for p in self.files if not p.startswith(DATA)]
        self.text = {}
        for path in self.written:
            if f"/{path}".endswith(TEXT):
                self.text[path] = (self.root / path).read_text("utf-8", "replace").split("\n")

    def _tracked(self):
        """What git tracks or would track; without git, every file outside the build folders."""
        listed = subprocess.run(["git", "-c", "safe.directory=*", "-C", self.root, "ls-files", "-z", "--cached", "--others",
                                 "--exclude-standard"], capture_output=True) if (self.root / ".git").exists() else None
        if listed and listed.returncode == 0:
            return listed.stdout.decode().strip("\0").split("\0")
        found = []
        for folder, inside, names in os.walk(self.root):
            inside[:] = [d for d in inside if d not in (".git", "__pycache__") and not re.fullmatch("build(-.*)?", d)]
            found += [os.path.relpath(os.path.join(folder, name), self.root) for name in names]
        return found

    def code(self, *folders, suffixes=CODE + (".py",)):
        return [p for p in self.text if p.startswith(tuple(f + "/" for f in folders)) and p.endswith(suffixes)]

    def matches(self, paths, pattern):
        for path in paths:
            for number, line in enumerate(self.text[path], 1):
                if match := pattern.search(line):
                    yield path, number, match


def file_length(tree):
    for path in tree.code(*CODE_FOLDERS):
        length = len(tree.text[path]) - (tree.text[path][-1] == "")
        if length > MAX_LINES and path not in LONG_FILES:
            yield path, MAX_LINES + 1, f"{length} lines, at most {MAX_LINES}: split it by subject"


def include_direction(tree):
    for path, number, match in tree.matches(tree.code("src"), INCLUDE):
        included, folder = match[1], path.split("/")[1]
        if included.startswith("generated/"):
            continue
        if "/" not in included or included.startswith("."):
            yield path, number, f'"{included}" is not written from src/ on'
        elif folder in MAY_INCLUDE and MAY_INCLUDE[folder] is not None:
            allowed = [folder] + MAY_INCLUDE[folder]
            if included.split("/")[0] not in allowed and included not in allowed:
                yield path, number, f'{folder} may not include "{included}", only {", ".join(allowed)}'


def known_folders(tree):
    page = "\n".join(tree.text.get("ARCHITECTURE.md", []))
    for folder in sorted({p.split("/")[1] for p in tree.files if p.startswith("src/") and p.count("/") > 1}):
        if folder not in MAY_INCLUDE:
            yield f"src/{folder}", 1, "a new folder: say in MAY_INCLUDE of tests/house/house_rules.py what it may include"
        if page and f"src/{folder}" not in page:
            yield f"src/{folder}", 1, "ARCHITECTURE.md does not name it"


def environment(tree):
    for path, number, _ in tree.matches(tree.code("src"), GETENV):
        if not path.startswith("src/apps/options"):
            yield path, number, "only src/apps/options reads the environment"


def backend_condition(tree):
    for path, number, _ in tree.matches(tree.code("src"), BACKEND_CONDITION):
        if not path.startswith("src/cuda/"):
            yield path, number, "a condition on a backend belongs to src/cuda: choose by linking another file"


def format_name(tree):
    for path, number, match in tree.matches(tree.code("src"), FORMAT_NAME):
        if not FORMAT_PLACES.match(path):
            yield path, number, f"'{match[0]}': only weights/formats, weights/encode, weights/gguf_*, */linear, */moe and apps name a format"


def model_name(tree):
    for path, number, match in tree.matches(tree.code("src"), MODEL_NAME):
        if not MODEL_PLACES.match(path):
            yield path, number, f"'{match[0]}': only models, weights/gguf_*, text/tool_calls and apps name a model"


def pragma_once(tree):
    for path in tree.code(*(f for f in CODE_FOLDERS if f != "include"), suffixes=(".h", ".cuh")):
        if "#pragma once" not in tree.text[path]:
            yield path, 1, "a header without #pragma once"


def unfinished(tree):
    for path, number, match in tree.matches([p for p in tree.text if not p.startswith(SPELLS_THE_RULES)], UNFINISHED):
        yield path, number, f"'{match[0]}': finish it, or open an issue"


def tabs(tree):
    for path, number, _ in tree.matches(tree.text, re.compile("\t")):
        yield path, number, "a tab: indent with spaces, write \\t inside strings"


def file_name(tree):
    for path in tree.written:
        name = path.split("/")[-1]
        if path.startswith(CODE_FOLDERS) and name not in FREE_NAMES and not SNAKE_CASE.fullmatch(name):
            yield path, 1, "file names are snake_case"


def home_path(tree):
    for path, number, match in tree.matches([p for p in tree.text if not p.startswith(SPELLS_THE_RULES)], HOME_PATH):
        yield path, number, f"'{match[0]}...' is a path of one machine"


def tracked_size(tree):
    sizes = {p: (tree.root / p).stat().st_size for p in tree.files}
    if sum(sizes.values()) > MAX_TRACKED_BYTES:
        largest = max(sizes, key=sizes.get)
        yield largest, 1, f"the files of the tree have {sum(sizes.values())} bytes, at most {MAX_TRACKED_BYTES}; this one is the largest"


RULES = [file_length, include_direction, known_folders, environment, backend_condition, format_name, model_name,
         pragma_once, unfinished, tabs, file_name, home_path, tracked_size]


def main(root):
    tree = Tree(root)
    if not tree.files:
        sys.exit(f"{root}: no files found")
    broken = 0
    for rule in RULES:
        for path, number, message in rule(tree):
            print(f"{path}:{number}: {rule.__name__}: {message}")
            broken += 1
    print(f"{len(RULES)} rules, {len(tree.files)} files, {broken} violations")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
