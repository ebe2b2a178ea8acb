"""A tiny network for each operator and attribute: what each target makes of it.

each_operator.toml has a row of the manual's table for each kind of operator, with the networks that
stand for it: the shape of their input and what they do, as text of PyTorch.

    python -m tests.software.each_operator [--only TEXT] [--write]

brings each network through quantize.py and ai8xize.py to each target, compiles what they write, and
lets it compare its result with that of the integers in Python: right, refused (with nothing
written), or wrong. quantize.py compares the integers with floating point. `--write` puts the table
into the manual.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ai8xtools.commands.targets import main as tool
from ai8xtools.diagnostics.errors import ToolError
from tests.conftest import ROOT
from tests.software.compiled import passed, run_project

Shape = tuple[int, ...]
PAGE = ROOT / "docs" / "software.md"
_TABLE = re.compile(r"(<!-- begin each operator -->\n\n)(?:\|.*\n)*")
RIGHT, REFUSED, WRONG = "right", "refused", "WRONG"
ROADS = {
    "MCU": ("MCU", ("--device", "MCU")), "Q15": ("Q15", ("--device", "MCU")),
    "Q7": ("Q7", ("--device", "MCU")), "CMSIS-NN": ("MCU", ("--device", "CMSIS-NN")),
    "container": ("MCU", ("--device", "MCU", "--container", "{folder}/net.nnb")),
}  # fmt: skip
"""Targets: what quantize.py gets as its --device, and options of ai8xize.py."""


class Of(nn.Module):
    """What a function computes, with modules that it is given."""

    def __init__(self, function: Callable[..., Any], *parts: nn.Module) -> None:
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, x: Tensor) -> Any:
        return self.function(x, *self.parts)


class Masked(nn.Module):
    """Causal attention of a sequence [N, T, C] to itself, by the function or written out."""

    def __init__(self, heads: int, how: str) -> None:
        super().__init__()
        self.heads, self.how, width = heads, how, 8
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("mask", torch.ones(6, 6).tril() == 0)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.into(x).unflatten(2, (3, self.heads, -1)).transpose(1, 3)
        q, k, v = parts[:, :, 0], parts[:, :, 1], parts[:, :, 2]
        if self.how == "function":
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
            if self.how == "masked":
                scores = scores.masked_fill(self.mask, float("-inf"))
            y = scores.softmax(3) @ v
        return self.out(y.transpose(1, 2).flatten(2))


def _read() -> dict[str, dict[str, tuple[Shape, str]]]:
    """Return shapes and networks by row of the table and name."""
    rows = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {
        group: {name: (tuple(map(int, shape.split("x"))), text)
                for name, (shape, text) in networks.items()}
        for group, networks in rows.items()
    }  # fmt: skip


GROUPS = _read()


def every() -> Iterator[tuple[str, str]]:
    """Yield the row and name of each network."""
    for group, networks in GROUPS.items():
        yield from ((group, name) for name in networks)


def network_of(group: str, name: str) -> tuple[nn.Module, Tensor]:
    """Return a network behind a layer that gives its data another scale, and samples [N, ...]."""
    shape, text = GROUPS[group][name]
    torch.manual_seed(1)
    scope = {"nn": nn, "torch": torch, "functional": functional, "Of": Of, "Masked": Masked}
    operator: nn.Module = eval(text, scope)
    first = nn.Conv2d(shape[0], shape[0], 1) if len(shape) == 3 else nn.Conv1d(
        shape[0], shape[0], 1)  # fmt: skip
    samples = torch.rand(8, *shape) * 2 - 1
    for module in operator.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module(samples)
    return nn.Sequential(first, operator).eval(), samples


def words_of(group: str, name: str, folder: Path) -> list[str]:
    """Write a network with its weights and samples; return what quantize.py needs to find them."""
    network, samples = network_of(group, name)
    (folder / "net.py").write_text(
        "from torch import nn\nfrom tests.software.each_operator import network_of\n\n\n"
        "class Net(nn.Sequential):\n    def __init__(self):\n"
        f"        super().__init__(*network_of({group!r}, {name!r})[0])\n"
    )
    torch.save({"state_dict": network.state_dict()}, folder / "net.pth")
    np.save(folder / "x.npy", samples.numpy())
    return [
        str(folder / "net.pth"), "--model", f"{folder / 'net.py'}:Net", "--calibrate",
        str(folder / "x.npy"),
    ]  # fmt: skip


def verdicts_of(group: str, name: str, folder: Path) -> dict[str, str]:
    """Return what becomes of a network on each target; files are written in a folder."""
    given = words_of(group, name, folder)
    made: dict[str, str] = {}
    verdicts = {}
    for target, (device, options) in ROADS.items():
        checkpoint = str(folder / f"{device}.pth.tar")
        if device not in made:
            made[device] = _run("quantize.py", [*given, checkpoint, "--device", device])
        if made[device]:
            left = Path(checkpoint).exists()
            verdicts[target] = f"{WRONG}: left behind" if left else f"{REFUSED} {made[device]}"
            continue
        project = folder / target
        words = ["--mcu", "stm32h743", "--checkpoint-file", checkpoint]
        words += [one.format(folder=folder) for one in options]
        refused = _run("ai8xize.py", [*words, "--prefix", target, "--test-dir", str(folder)])
        if refused:
            left = project.exists()
            verdicts[target] = f"{WRONG}: left behind" if left else f"{REFUSED} {refused}"
            continue
        files = {path.name: path.read_text() for path in project.glob("*.[ch]")}
        done = run_project(files, folder / f"{target}-run", ("-O0",))
        verdicts[target] = RIGHT if passed(done) else f"{WRONG}: {done.stdout}{done.stderr}"
    return verdicts


def _run(name: str, words: Sequence[str]) -> str:
    """Run a tool; return its refusal, "" for none."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = tool(name, [*words])
    except ToolError as exc:
        return " ".join(str(exc).split())
    except SystemExit as exc:
        return f"status {exc.code}"
    return f"status {status}" if status else ""


def rows_of(page: str) -> dict[str, list[str]]:
    """Return the cells of each row of the table in the manual."""
    found = _TABLE.search(page)
    lines = found[0].split("\n")[4:] if found else []
    return {cells[1]: cells[2:-1] for line in lines
            if (cells := [cell.strip() for cell in line.split("|")])[1:]}  # fmt: skip


def table(verdicts: dict[str, dict[str, dict[str, str]]]) -> str:
    """Return the table of the manual, by row, network and target."""
    lines = [f"| operators | {' | '.join(ROADS)} |", "|---" * (len(ROADS) + 1) + "|"]
    for group, networks in verdicts.items():
        cells = []
        for target in ROADS:
            refused = [name for name, found in networks.items() if found[target] != RIGHT]
            if not refused:
                cells.append("yes")
            else:
                cells.append("refused" if len(refused) == len(networks) else
                             f"refused: {'; '.join(refused)}")  # fmt: skip
        lines.append(f"| {group} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Judge networks and print a table; return 1 if any is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="networks whose row or name has this in it")
    parser.add_argument("--write", action="store_true", help="put the table into the manual")
    args = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, dict[str, dict[str, str]]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for group, name in every():
        if args.only not in f"{group}: {name}":
            continue
        with tempfile.TemporaryDirectory() as folder:
            verdicts = verdicts_of(group, name, Path(folder))
        found.setdefault(group, {})[name] = verdicts
        for target, verdict in verdicts.items():
            counts[target, verdict.split()[0].rstrip(":")] += 1
            if verdict != RIGHT:
                print(f"{group}: {name}, {target}: {verdict}", flush=True)
    for (target, verdict), count in sorted(counts.items()):
        print(f"{target:10} {verdict:8} {count}")
    if args.write and not args.only:
        PAGE.write_text(_TABLE.sub(lambda match: f"{match[1]}{table(found)}\n", PAGE.read_text()))
    return int(any(verdict == WRONG for _, verdict in counts))


if __name__ == "__main__":
    sys.exit(main())
