"""How many of the command lines of lines.txt get as far as the data, and why not."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

from tests.recipes.running import lines, run


def main() -> int:
    """Run the lines whose names match the arguments; return 1 if one does not work."""
    globs = sys.argv[1:] or ["*"]
    total: Counter[str] = Counter()
    works: Counter[str] = Counter()
    for name, words in lines().items():
        if not any(fnmatch(name, glob) for glob in globs):
            continue
        kind = "evaluate" if "--evaluate" in words else words[0].removesuffix(".py")
        with tempfile.TemporaryDirectory() as folder:
            failure = run(words, Path(folder))
        total[kind] += 1
        works[kind] += failure is None
        print(f"{'ok' if failure is None else 'FAIL':5}{name}", flush=True)
        if failure is not None:
            print(f"      {failure.splitlines()[0]}")
    for kind, count in total.items():
        print(f"{kind}: {works[kind]} of {count}")
    print(f"all: {works.total()} of {total.total()}")
    return int(works != total)


if __name__ == "__main__":
    sys.exit(main())
