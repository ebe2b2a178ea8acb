#!/usr/bin/env python3
"""From the user's own data to measured firmware in one command: `make mine DATA=folder:pictures`.

Drives the command lines that a user would type: train, quantize, generate with a report, emulate on
the test samples. Each is printed. One whose results are there, from the same command line and
nothing that has changed since, is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # started as a script, Python looks beside this file only

from ai8xtools.diagnostics import run  # noqa: E402
from ai8xtools.values.accuracy import Accuracy, Measured, combined, measured_of  # noqa: E402
from datasets.own.settings import KINDS, OF_PICTURES, kind_and_path, plain_name  # noqa: E402
from tools.demo import Runner, alone, failure  # noqa: E402

MICROCONTROLLER = "MCU"
SIZE = ("--resize", "32")
"""Of pictures, where the command line does not say it."""
_FEW, _MOST_FOLDS = 50, 100
_TOLD = r"^(?!---|Saving checkpoint|\d+ samples|==> \w+:|\s*$)"
"""Lines of a training that are shown: one for each epoch, and what stands around them."""
_RESULT = re.compile(r"^(?:==> \w+:|\w+ of the firmware|DONE|PASS)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Options:
    """The data, KIND:PATH, where its firmware runs, names, and further options of train.py."""

    data: str
    device: str
    mcu: str | None
    name: str
    output: Path
    folds: int
    training: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """Runs a step unless its results are there, and newer than what they were made of."""

    run: Runner
    place: Path

    def __call__(
        self, name: str, needed: Path, outputs: Sequence[Path], tool: str, *options: str | Path,
        show: str = "",
    ) -> str:  # fmt: skip
        """Run a tool that makes files or folders `outputs` of `needed`; return what it printed.

        Lines that match `show` are printed. Raises DiagnosticError naming the step if it fails.
        """
        stages = self.run.output / "stages"
        stamp, started = stages / f"{name}.command", stages / f"{name}.started"
        command = shlex.join(self.run.words(self.place, tool, *options))
        is_made = _text(stamp) == command and all(path.exists() for path in outputs)
        if is_made and _newest(needed) <= stamp.stat().st_mtime_ns:
            print(f"\n== {name}\n$ {command}\n  nothing has changed: its results are used again")
            return _text(stages / f"{name}.txt")
        stages.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        started.write_text(command, encoding="utf-8")  # what changes from now on is newer
        text = self.run(name, tool, *options, cwd=self.place, show=show)
        started.replace(stamp)
        return text


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _newest(place: Path) -> int:
    """Return when a file, or what is in a folder, was changed last, in ns; 0 if it is missing.

    What replaces a file may bring an older time with it; that of the entry itself is new.
    """
    entries = [path.stat() for path in (place, *_below(place)) if path.exists()]
    return max((max(one.st_mtime_ns, one.st_ctime_ns) for one in entries), default=0)


def _below(place: Path) -> Iterator[Path]:
    """Yield all that is below a folder; links may lead to folders, once to each."""
    seen = set()
    for folder, folders, files in os.walk(place, followlinks=True):
        visited = os.path.realpath(folder) in seen
        seen.add(os.path.realpath(folder))
        yield from (Path(folder, name) for name in (*folders, *files) if not visited)
        if visited:
            folders.clear()


def make(steps: Steps, options: Options) -> str:
    """Make firmware of data, and return its results.

    Raises DiagnosticError naming the step that fails.
    """
    output, name, device = steps.run.output, options.name, options.device
    source = kind_and_path(options.data)
    assert source is not None
    kind, data = source[0], steps.place / Path(source[1]).expanduser()
    data = data.parent if data.suffix == ".npy" else data
    chip = "MAX78000" if device == MICROCONTROLLER else device
    sized = kind not in OF_PICTURES or any(word.startswith("--resize") for word in options.training)
    size = () if sized else SIZE
    logs, quantized, project = output / "logs", output / f"{name}-q.pth.tar", output / name
    report = output / "report.html"

    def train(step: str, place: Path, *more: str) -> Path:
        """Return the best checkpoint of a training, whose logs are in a folder `place`."""
        steps(
            step, data, [place], "train.py", "--model", "auto", "--dataset", options.data, *size,
            *options.training, *more, "--device", chip, "--out-dir", place, "--name", name,
            show=_TOLD,
        )  # fmt: skip
        return _trained(place, name)

    trained = train("train", logs)
    steps("quantize", trained, [quantized], "quantize.py", trained, quantized, "--device", chip)
    mcu = () if options.mcu is None else ("--mcu", options.mcu)
    steps(
        "generate", quantized, [project, report], "ai8xize.py", "--model", "auto",
        "--checkpoint-file", quantized, "--device", device, *mcu, "--prefix", name,
        "--test-dir", output, "--overwrite", "--report", report,
    )  # fmt: skip
    text = steps("emulate", project, [], "emulate.py", project, "--input", options.data)
    folds = [
        _accuracy(train(
            f"fold-{n + 1}-of-{options.folds}", output / "folds" / str(n), "--test-share",
            f"{1 / options.folds:.9f}", "--test-part", str(n),
        ))
        for n in range(options.folds)
    ]  # fmt: skip
    results = [line for line in text.splitlines() if _RESULT.match(line)]
    places = {"project": project, "report": report}
    shown = (f"{what}: {os.path.relpath(path, steps.place)}" for what, path in places.items())
    return "\n".join((*results, *_cross_validated(folds, _accuracy(trained)), *shown))


def _accuracy(checkpoint: Path) -> Measured:
    """Return what the training of a checkpoint measured in the end, of integers if it could."""
    metrics = json.loads((checkpoint.parent / "metrics.json").read_text(encoding="utf-8"))
    measured = [*metrics.get("accuracy", {}).values()]
    return (measured_of(measured[-1]) if measured else None) or Accuracy(0, 0, 0)


def _cross_validated(folds: Sequence[Measured], measured: Measured) -> Iterator[str]:
    """Yield what trainings with other test samples say, or that they would say more."""
    if folds and all(one.count for one in folds):
        figures = (str(one).partition(" (")[0] for one in folds)
        worst, *_, best = sorted(figures, key=lambda text: float(text.split()[0]))
        trainings = f"{len(folds)} trainings, {worst.split()[0]} to {best}"
        yield f"Cross-validation: {combined(folds)}; {trainings}"
    elif not folds and 0 < measured.count < _FEW:
        yield f"{measured.count} test samples tell little: --folds 5 tests each sample once"


def _trained(logs: Path, name: str) -> Path:
    """Return the best checkpoint of the last training, of QAT if there was some."""
    for folder in sorted(logs.glob(f"{escape(name)}___*"), reverse=True):
        for best in (f"{name}_qat_best.pth.tar", f"{name}_best.pth.tar"):
            if (folder / best).is_file():
                return folder / best
    raise failure(f"{logs} holds no trained network", "Leave out options that do not train.")


def parse(words: Sequence[str]) -> Options:
    """Return what the command line says; usage errors end with status 2."""
    parser = argparse.ArgumentParser(
        prog="mine.py", usage="mine.py KIND:PATH [options] [options of train.py]",
        description="Train, quantize, generate and measure firmware for your own data.",
        allow_abbrev=False,
    )  # fmt: skip
    add = parser.add_argument
    add("data", metavar="KIND:PATH", help=f"the data; KIND is {', '.join(KINDS)}")
    add("--device", default="MAX78000", metavar="NAME", help="chip, or MCU (default: MAX78000)")
    add("--mcu", metavar="NAME", help="with --device MCU: which one")
    add("--name", help="of network and project (default: the last part of PATH)")
    add("--folds", type=int, default=0, metavar="N", help="train N networks more, each tested on "
        "another part of the data, to tell how good they are (cross-validation)")  # fmt: skip
    add("--output", type=Path, metavar="DIR", help="folder for all results (default: mine/NAME)")
    args, training = parser.parse_known_args(words)
    source = kind_and_path(args.data)
    if source is None or not source[1]:
        parser.error(f"{args.data!r} is not KIND:PATH, as in folder:pictures; name it first")
    if args.folds and not 2 <= args.folds <= _MOST_FOLDS:
        parser.error(f"--folds is {args.folds}, expected 2 to {_MOST_FOLDS}")
    name = args.name or plain_name(args.data)
    output = (args.output or Path("mine") / name).resolve()
    return Options(
        args.data, args.device.upper(), args.mcu, name, output, args.folds, tuple(training)
    )


def main() -> None:
    """Read the options, run the steps, print the results."""
    options = parse(sys.argv[1:])
    with alone(options.output):
        summary = make(Steps(Runner(ROOT, options.output), Path.cwd()), options)
    print(f"\n== result\n{summary}")


if __name__ == "__main__":
    sys.exit(run(main))
