"""What tests that run the program on models of their own have in common; their arguments are PROGRAM SOURCE."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import safetensors_file

PROGRAM, SOURCE = (Path(p).resolve() for p in sys.argv[1:3])
TINY = SOURCE / "models" / "tiny"
GOLDEN = SOURCE / "tests" / "data" / "golden"


def environment():
    return {k: v for k, v in os.environ.items() if not k.startswith(("SLUICE_", "HF_"))}


def sluice(*arguments, **keywords):
    return subprocess.run([PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL, text=True, capture_output=True,
                          timeout=600, env=environment(), **keywords)


class ProgramCase(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="sluice_test_")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def succeeds(self, *arguments):
        done = sluice(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def fails(self, code, pattern, *arguments, **keywords):
        """One line on standard error that matches, nothing on standard output."""
        done = sluice(*arguments, **keywords)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertRegex(done.stderr, pattern)

    def logits(self, model, ids, *flags):
        """Names to float32 arrays of what `logits` writes."""
        out = self.folder / "logits.safetensors"
        self.succeeds("logits", model, "--ids", ",".join(map(str, ids)), "--out", out, "--compute", "f32", *flags)
        return {name: values for name, (_, values) in safetensors_file.read_arrays(out).items()}
