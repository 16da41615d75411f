"""Each rule of the house, broken once in a small tree: the script must fail and name the file, the line and the rule."""
import contextlib
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import house_rules

SCRIPT = Path(__file__).with_name("house_rules.py")

GOOD_TREE = {
    "ARCHITECTURE.md": "`src/base` src/ops src/cpu/ src/cuda/ src/models/ src/cache/ src/engine/ src/text/ src/apps/ src/weights/\n",
    "src/base/error.h": "#pragma once\n",
    "src/ops/views.h": '#pragma once\n#include "base/error.h"\n',
    "src/ops/ops.h": '#pragma once\n#include "ops/views.h"\n',
    "src/cpu/linear/fp8.cpp": '#include "ops/ops.h"\n#ifdef __AVX2__\n#endif\n',
    "src/models/qwen.cpp": '#include "ops/ops.h"\n',
    "src/weights/formats/q4_k.cpp": '#include "base/error.h"\n',
    "src/cache/pool.h": '#pragma once\n#include "ops/views.h"\n',
    "src/engine/request.h": "#pragma once\n",
    "src/text/stop.h": '#pragma once\n#include "engine/request.h"\n',
    "src/apps/options.cpp": '#include "cpu/cpu.h"\nconst char* home = getenv("HOME");  // fp8, qwen\n',
    "tests/base/error_test.cpp": "int hint4all = 0;  // uint4, framework/data\n",
    "tests/data/Some File.txt": "TODO\t/home/someone\n" * 600,
    "build-asan/Broken.h": "\tTODO\n",
}

# rule: (file, content, line of the violation)
BREAKS = {
    "file_length": [("tests/base/long_test.cpp", "int x;\n" * 501, 501), ("src/base/long.h", "#pragma once\n" * 600, 501)],
    "include_direction": [
        ("src/base/up.cpp", '#include "ops/ops.h"\n', 1),
        ("src/cpu/other.cpp", '\n#include "cuda/cuda.h"\n', 2),
        ("src/cpu/model.cpp", '#include "models/model.h"\n', 1),
        ("src/cuda/other.cpp", '#include "cpu/cpu.h"\n', 1),
        ("src/cache/ops.cpp", '#include "ops/views.h"\n#include "ops/ops.h"\n', 2),
        ("src/engine/device.cpp", '#include "cpu/cpu.h"\n', 1),
        ("src/text/engine.cpp", '#include "engine/engine.h"\n', 1),
        ("src/models/cached.cpp", '#include "cache/pool.h"\n', 1),
        ("src/ops/near.cpp", '#include "ops.h"\n', 1),
        ("src/ops/above.cpp", '#include "../base/error.h"\n', 1),
    ],
    "known_folders": [("src/helpers/a.cpp", "\n", 1)],
    "environment": [("src/base/log.cpp", '\nauto* level = std::getenv("LEVEL");\n', 2)],
    "backend_condition": [("src/ops/a.cpp", "#ifdef SLUICE_CUDA\n#endif\n", 1), ("src/apps/b.cpp", "\n#if defined(__CUDACC__)\n", 2)],
    "format_name": [
        ("src/ops/a.cpp", "void linear_fp8();\n", 1),
        ("src/models/b.cpp", "\nenum { Q4_K };\n", 2),
        ("src/engine/c.cpp", "int awq;\n", 1),
    ],
    "model_name": [("src/engine/a.cpp", '\n\nauto name = "Qwen3";\n', 3), ("src/text/tokens.cpp", "int qwen_split;\n", 1)],
    "pragma_once": [("src/base/a.h", "int a;\n", 1)],
    "unfinished": [("src/base/a.cpp", "\n// TODO: more\n", 2), ("CONTRIBUTING.md", "FIXME\n", 1)],
    "tabs": [("src/base/a.cpp", "\n\tint a;\n", 2), ("tests/python/a.py", "\tx\n", 1)],
    "file_name": [("src/base/BadName.cpp", "\n", 1), ("tests/base/bad-name.cpp", "\n", 1)],
    "home_path": [("tests/base/a.cpp", 'auto path = "/home/someone/model";\n', 1), ("README.md", "\ncd /root/x\n", 2)],
    "tracked_size": [("models/big.bin", "x" * (46 * 2**20), 1)],
}


class HouseRules(unittest.TestCase):
    @contextlib.contextmanager
    def tree(self, extra):
        with tempfile.TemporaryDirectory() as root:
            for path, content in {**GOOD_TREE, **extra}.items():
                file = Path(root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content)
            yield root

    def check(self, extra):
        with self.tree(extra) as root, contextlib.redirect_stdout(io.StringIO()) as printed:
            return house_rules.main(root), printed.getvalue()

    def test_a_tree_that_keeps_them_passes(self):
        code, printed = self.check({})
        self.assertEqual(code, 0, printed)

    def test_each_rule_fails_when_broken_and_names_file_line_and_rule(self):
        for rule, breaks in BREAKS.items():
            for path, content, line in breaks:
                with self.subTest(rule=rule, path=path):
                    code, printed = self.check({path: content})
                    self.assertEqual(code, 1)
                    named = path if rule != "known_folders" else "src/helpers"
                    self.assertIn(f"{named}:{line}: {rule}: ", printed)
                    others = [r.__name__ for r in house_rules.RULES if f": {r.__name__}: " in printed]
                    self.assertEqual(others, [rule])

    def test_the_script_ends_with_1_for_a_broken_rule_and_0_without(self):
        for extra, expected in [({}, 0), ({"src/base/a.h": "int a;\n"}, 1)]:
            with self.tree(extra) as root:
                self.assertEqual(subprocess.run([sys.executable, SCRIPT, root], stdout=subprocess.DEVNULL).returncode, expected)

    def test_every_rule_has_a_case_that_breaks_it(self):
        self.assertEqual(set(BREAKS), {rule.__name__ for rule in house_rules.RULES})

    def test_a_folder_that_the_architecture_page_does_not_name_is_found(self):
        code, printed = self.check({"ARCHITECTURE.md": "src/base/\n"})
        self.assertEqual(code, 1)
        self.assertIn("src/ops:1: known_folders: ARCHITECTURE.md does not name it", printed)


if __name__ == "__main__":
    unittest.main()
