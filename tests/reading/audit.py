"""make measure WHAT=terminal: each tool in terminals of 80 and 120 columns, and in a pipe.

In a terminal no row of a table is wider than it, and the last line names the result; in a pipe
there are no carriage returns and no escapes. Prints the widths, and what is wrong.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from tests.conftest import ROOT
from tests.reading.test_terminal import in_terminal, left

DIGITS = (
    "--config-file networks/digits-chw-ai85.yaml --sample-input tests/sample_digits.npy "
    "--checkpoint-file trained/digits-ai85digitsnet-qat8-q.pth.tar"
)
TRAINED = "trained/digits-ai85digitsnet-qat8.pth.tar"
NETWORK = "--device MAX78000 --model ai85digitsnet --dataset digits"
LINES = (
    f"ai8xize.py {DIGITS} --device MAX78000 --test-dir OUT --prefix a --overwrite --verify",
    f"ai8xize.py {DIGITS} --device MAX78000 --fits",
    f"ai8xize.py {DIGITS} --device MCU --mcu stm32l4r5 --test-dir OUT --prefix m --overwrite",
    f"ai8xize.py {DIGITS} --device MAX78000 --compare-project OUT/a",
    f"quantize.py {TRAINED} OUT/q.pth.tar --device MAX78000 --verbose",
    f"quantize.py {TRAINED} OUT/q15.pth.tar --device Q15 --calibrate digits",
    f"quantize.py {TRAINED} OUT/fixed.nnb --device FIXED --calibrate digits",
    "quantize.py trained/mnist-lowbit-dense.pth.tar OUT/s.h --device BITNET",
    f"train.py {NETWORK} --out-dir OUT/logs --epochs 2 --qat-policy None",
    f"train.py {NETWORK} --out-dir OUT/logs --evaluate --exp-load-weights-from {TRAINED}",
    f"train.py {NETWORK} --fits",
    f"train.py {NETWORK} --summary compute",
    "emulate.py OUT/a",
    "emulate.py OUT/a --prove",
    "emulate.py OUT/a --explain",
    "emulate.py OUT/m --count",
)
_RULE = re.compile(r"^[-+= ]{9,}$")
_NO_LAST_LINE = ("--summary",)


def wrong(text: str, columns: int | None, line: str) -> Iterator[str]:
    """Yield what is wrong with the output of a command; None: in a pipe."""
    lines = text.splitlines() if columns is None else left(text)
    if columns is None:
        if {"\r", "\x1b"} & {*text}:
            yield "carriage returns or escapes in a pipe"
        return
    shown = [one for one in lines if one.strip()]
    wide = [n for n, one in enumerate(lines) if _RULE.match(one) and len(one) > columns]
    if wide:
        yield f"a table of {len(lines[wide[0]])} characters"
    if not any(word in line for word in _NO_LAST_LINE) and not re.match(
        r"Next: |.*(: .*| Next: )", shown[-1]
    ):
        yield f"the last line is {shown[-1]!r}"


def main() -> int:
    """Run all; return 1 if something is wrong."""
    count = 0
    with tempfile.TemporaryDirectory(prefix="terminal-") as folder:
        for line in LINES:
            words = line.replace("OUT", folder).split()
            found: list[str] = []
            for columns in (80, 120):
                code = f"import sys, runpy; sys.argv = {words!r}; sys.path.insert(0, '.'); " \
                       f"runpy.run_path({words[0]!r}, run_name='__main__')"  # fmt: skip
                text = in_terminal(code, columns)
                found += [f"{columns} columns: {one}" for one in wrong(text, columns, line)]
            command = [sys.executable, *words]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
            piped = (done.stdout + done.stderr).decode()
            found += wrong(piped, None, line)
            last = [one for one in left(text) if one.strip()][-1]
            print(f"{line[:70]}\n    {last.replace(folder, 'OUT')[:110]}", flush=True)
            for one in found:
                print(f"    WRONG: {one}")
            count += len(found)
    print(f"{len(LINES)} commands, {count} complaints")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
