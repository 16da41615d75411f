"""Writes src/text/unicode_tables.cpp: the classes of code points that the pre-tokenizer and NFC need.

Letters, marks, numbers and white space are asked of Hugging Face tokenizers (0.23.3: Unicode 16.0), because a
tokenizer must agree with it; what NFC may change comes from Python's unicodedata (14.0; the tokenizers'
own NFC knows no newer characters either).

    pip install tokenizers==0.23.3
    python3 tools/unicode_tables.py src/text/unicode_tables.cpp
"""

import sys
import unicodedata

from tokenizers import Regex, pre_tokenizers

LETTER, MARK, NUMBER, SPACE, NOT_NFC = 1, 2, 4, 8, 16
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
BLOCK = 4096


def members(pattern):
    """All code points that one regular expression of one character matches."""
    keep = pre_tokenizers.Split(Regex(pattern), behavior="removed", invert=True)
    found = set()
    for start in range(0, len(CODE_POINTS), BLOCK):
        text = "".join(map(chr, CODE_POINTS[start : start + BLOCK]))
        for piece, _ in keep.pre_tokenize_str(text):
            found.update(map(ord, piece))
    return found


def changed_by_nfc():
    """Code points that are not sure to stay as they are: NFC_Quick_Check No or Maybe, or a combining class."""
    second = set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    for c in CODE_POINTS:
        parts = unicodedata.decomposition(chr(c)).split()
        if len(parts) == 2 and not parts[0].startswith("<") and unicodedata.normalize("NFC", chr(c)) == chr(c):
            second.add(int(parts[1], 16))
    return second | {
        c for c in CODE_POINTS if unicodedata.combining(chr(c)) or unicodedata.normalize("NFC", chr(c)) != chr(c)
    }


def ranges(classes):
    start = None
    for c in range(0x110001):
        value = classes.get(c, 0)
        if start is not None and value != classes[start]:
            yield start, c - 1, classes[start]
            start = None
        if start is None and value:
            start = c


def main(path):
    classes = {}
    for pattern, bit in ((r"\p{L}", LETTER), (r"\p{M}", MARK), (r"\p{N}", NUMBER), (r"\s", SPACE)):
        for c in members(pattern):
            classes[c] = classes.get(c, 0) | bit
    for c in changed_by_nfc():
        classes[c] = classes.get(c, 0) | NOT_NFC
    entries = [f"{{0x{a:X}, 0x{b:X}, {v}}}," for a, b, v in ranges(classes)]
    lines, line = [], ""
    for entry in entries:
        if len(line) + len(entry) > 106:
            lines.append(line)
            line = ""
        line += (" " if line else "    ") + entry
    lines.append(line)
    with open(path, "w") as out:
        out.write("// Written by tools/unicode_tables.py; do not edit.\n")
        out.write('#include "text/unicode_tables.h"\n\nnamespace sluice {\n\n// clang-format off\n')
        out.write("static constexpr CodePointRange ranges[] = {\n" + "\n".join(lines) + "\n};\n// clang-format on\n\n")
        out.write("std::span<const CodePointRange> code_point_ranges() { return ranges; }\n\n}  // namespace sluice\n")


if __name__ == "__main__":
    main(sys.argv[1])
