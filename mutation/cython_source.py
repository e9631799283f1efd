"""Mutants of a Cython file, from its tokens: Cython has no `ast`, and Python's tokenizer reads it well enough.

Declarations are left out: in `cdef const uint8_t* p` and `<int64_t>x` a sign is part of a type. What the C compiler or
Cython refuses is no mutant; the run says so.
"""

from __future__ import annotations

import io
import tokenize
from itertools import pairwise

from mutation.mutants import Mutant, numbered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

SWAPS = {
    "<": ("comparison", "<="),
    "<=": ("comparison", "<"),
    ">": ("comparison", ">="),
    ">=": ("comparison", ">"),
    "==": ("comparison", "!="),
    "!=": ("comparison", "=="),
    "+": ("arithmetic", "-"),
    "-": ("arithmetic", "+"),
    "*": ("arithmetic", "+"),
    "//": ("arithmetic", "*"),
    "/": ("arithmetic", "*"),
    "%": ("arithmetic", "+"),
    "<<": ("arithmetic", ">>"),
    ">>": ("arithmetic", "<<"),
    "&": ("arithmetic", "|"),
    "|": ("arithmetic", "&"),
    "^": ("arithmetic", "&"),
    "+=": ("arithmetic", "-="),
    "-=": ("arithmetic", "+="),
    "|=": ("arithmetic", "&="),
    "&=": ("arithmetic", "|="),
    "<<=": ("arithmetic", ">>="),
    ">>=": ("arithmetic", "<<="),
    "and": ("logic", "or"),
    "or": ("logic", "and"),
    "True": ("constant", "False"),
    "False": ("constant", "True"),
    "break": ("statement", "continue"),
    "continue": ("statement", "break"),
}
# The first word of a line that declares; of `cdef int x = a + b` what follows the `=` is code.
DECLARES = {"cdef", "cpdef", "def", "ctypedef", "cimport", "from", "import", "@", "class"}
OPERAND_ENDS = {tokenize.NAME, tokenize.NUMBER, tokenize.STRING}
# Names after which a sign has one operand.
KEYWORDS = {"return", "and", "or", "not", "if", "elif", "while", "in", "is", "else", "yield", "assert", "raise"}


def mutants(path: str, source: bytes) -> list[Mutant]:
    """Returns every mutant of one file, in the order of the text."""
    found: list[Mutant] = []
    text = source.decode()
    rows = text.split("\n")
    begins = [0]
    for row in rows:
        begins.append(begins[-1] + len(row.encode()) + 1)

    def at(place: tuple[int, int]) -> int:
        return begins[place[0] - 1] + len(rows[place[0] - 1][: place[1]].encode())

    def add(operator: str, token: tokenize.TokenInfo, new: str, function: str) -> None:
        start, end, line = at(token.start), at(token.end), token.start[0]
        old = source[start:end].decode()
        found.append(
            Mutant(
                path,
                f"{operator}: {old} to {new or 'nothing'}",
                start,
                end,
                old,
                new,
                line,
                (line, line),
                rows[line - 1].strip(),
                function,
                not function,
            )
        )

    function, indent, skipped = "", 0, 0
    for whole in _logical(text):
        line = whole
        first = line[0]
        column = first.start[1]
        if function and column <= indent and first.string not in ("#",):
            function = ""
        words = [token.string for token in line]
        if words[0] in ("cdef", "def", "cpdef") and words[-1] == ":" and "(" in words:
            function, indent = words[words.index("(") - 1], column
            skipped = column if function == "__repr__" else -1
            continue
        if words[0] in DECLARES:
            if words[0] != "cdef" or "=" not in words or words[-1] == ":":
                continue
            line = line[words.index("=") + 1 :]
        elif words[0] == "assert" or (len(line) == 1 and first.type == tokenize.STRING):
            continue
        if function == "__repr__" and skipped >= 0:
            continue
        # Fields of a struct and rows of `cdef enum` are declarations below their head.
        if not function and (len(words) < 3 or "=" not in words):
            continue
        for operator, token, new in _of_line(line):
            add(operator, token, new, function)
    return numbered(sorted(found, key=lambda mutant: (mutant.start, mutant.operator)))


def read(root: Path, path: str) -> list[Mutant]:
    return mutants(path, (root / path).read_bytes())


def _logical(text: str) -> list[list[tokenize.TokenInfo]]:
    """Returns the tokens of each logical line, without comments and line ends."""
    lines: list[list[tokenize.TokenInfo]] = [[]]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            lines.append([])
        elif token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            lines[-1].append(token)
    return [line for line in lines if line]


def _of_line(line: list[tokenize.TokenInfo]) -> list[tuple[str, tokenize.TokenInfo, str]]:
    found: list[tuple[str, tokenize.TokenInfo, str]] = []
    casts = 0
    square = 0
    previous = ""
    is_operand = False  # whether the token before ends an operand
    for token, after in pairwise([*line, line[-1]]):
        word = token.string
        if word == "<" and not is_operand:
            casts += 1
        elif word == ">" and casts:
            casts -= 1
            previous, is_operand = word, False
            continue
        elif casts:
            pass
        elif token.type == tokenize.NUMBER:
            found.append(("constant", token, _more(word)))
        elif word == "not" and after.string != "in" and previous != "is":
            found.append(("not dropped", token, ""))
        # Not `sizeof(int*)`, `Header* header` and `f(*args)`.
        elif (
            word in SWAPS
            and (is_operand or token.type == tokenize.NAME)
            and not (word in "*&" and (after.string in ")],*" or previous in ("(", ",")))
        ):
            found.append((SWAPS[word][0], token, SWAPS[word][1]))
        square += (word == "[") - (word == "]")
        if square and word == ":" and after.string not in ("]", ","):
            found.append(("slice", token, ": 1 +"))
        previous = word
        is_operand = (token.type in OPERAND_ENDS and word not in KEYWORDS) or word in (")", "]")
    if line[0].string == "return" and len(line) > 1:
        found += _returns(line)
    return found


def _returns(line: list[tokenize.TokenInfo]) -> list[tuple[str, tokenize.TokenInfo, str]]:
    """A verdict that is returned is another one."""
    words = [token.string for token in line]
    if words[1:3] == ["Verdict", "."] and len(words) == 4:
        return [("return", line[3], "SHORT" if words[3] != "SHORT" else "OK")]
    if words[1:] == ["NULL"] or len(words) != 2 or line[1].type != tokenize.NAME:
        return []
    return [("return", line[1], f"({words[1]} + 1)")]


def _more(word: str) -> str:
    if word[:2] in ("0x", "0X"):
        return hex(int(word, 16) + 1)
    return str(int(word) + 1) if word.isdigit() else f"({word} * 2)"
