"""Counts in the main loop of a kernel's machine code, from its disassembly."""

import re

_LABEL = re.compile(r"^\s*(\.L\w+):")

#: For NVIDIA (``nvdisasm -c``) and AMD (LLVM's assembly): what is an instruction, a branch and its
#: target, and what is counted.
_DIALECTS = {
    "cuda": {
        "instruction": re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?);"),
        "branch": re.compile(r"\bBRA\b.*?(\.L\w+)"),
        "wgmma_per_step": re.compile(r"\b[HQI]GMMA\b"),
        "mma_per_step": re.compile(r"\b[HQID]MMA\b"),
        "async_copies_per_step": re.compile(r"\b(LDGSTS|UTMALDG)\b"),
        "matrix_waits_per_step": re.compile(r"\bWARPGROUP\.DEPBAR\b"),
    },
    "hip": {
        "instruction": re.compile(r"^\s+([a-z]\w+\s.*|s_\w+)$"),
        "branch": re.compile(r"\bs_c?branch\w*\s+(\.L\w+)"),
        "wgmma_per_step": re.compile(r"(?!)"),
        "mma_per_step": re.compile(r"\bv_s?mfmac?_"),
        "async_copies_per_step": re.compile(r"\b(global_load|buffer_load)\w*_lds"),
        "matrix_waits_per_step": re.compile(r"(?!)"),
    },
}

#: The counts, as columns of a kernel table.
COUNTS = ("instructions_per_step", "wgmma_per_step", "mma_per_step", "async_copies_per_step",
          "matrix_waits_per_step")


def loop_counts(text, backend):
    """Counts in one pass of the main loop.

    The main loop is the shortest one that holds the most matrix instructions; where the compiler
    unrolled it, one pass is several steps.

    Parameters
    ----------
    text : str
        Disassembly.
    backend : str
        ``cuda`` or ``hip``.

    Returns
    -------
    dict of str to int
        `COUNTS`; empty if no loop holds a matrix instruction.
    """
    dialect = _DIALECTS[backend]
    best = {}
    for loop in _loops(text, dialect):
        counts = {name: sum(bool(dialect[name].search(line)) for line in loop)
                  for name in COUNTS[1:]}
        found = {COUNTS[0]: len(loop)} | counts
        matrix = counts["wgmma_per_step"] + counts["mma_per_step"]
        if matrix and _rank(found) > _rank(best):
            best = found
    return best


def _rank(counts):
    matrix = counts.get("wgmma_per_step", 0) + counts.get("mma_per_step", 0)
    return matrix, -counts.get("instructions_per_step", 0)


def _loops(text, dialect):
    """The instructions between each label and every later branch back to it."""
    instructions, labels = [], {}
    for line in text.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif instruction := dialect["instruction"].match(line):
            instructions.append(instruction[1])
            branch = dialect["branch"].search(instruction[1])
            if branch and branch[1] in labels:
                yield instructions[labels[branch[1]]:]
