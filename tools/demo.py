#!/usr/bin/env python3
"""The whole way in one command: from bundled images to firmware whose every word is verified.

Drives the command lines that a user would type, one stage after the other, and ends with a table.
The finished training is kept and used again while nothing that it depends on has changed; all
later stages take seconds and run each time. Everything is written below one folder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # started as a script, Python looks beside this file only

from ai8xtools.diagnostics import DiagnosticError, refused, run  # noqa: E402
from ai8xtools.reading.progress import Progress  # noqa: E402
from ai8xtools.reading.system import lock  # noqa: E402
from device import MAX78000  # noqa: E402

TRAIN, QUANTIZE = "scripts/train_digits.sh", "scripts/quantize_digits.sh"
TRAINING_SOURCES = (
    "train.py", "ai8x.py", "ai8xtools/layers", "ai8xtools/training", "models", "datasets",
    "policies", TRAIN,
)  # fmt: skip
PROJECT = "digits"
_BEST = "==> Best "
_EPOCH = re.compile(r"--- validate \(epoch=(\d+)\)")
LARGEST_LOSS = 1.0  # percentage points of accuracy between QAT and the quantized network


@dataclass(frozen=True, slots=True)
class Result:
    """What the table shows. Accuracies in percent of the test images, latency in clock cycles."""

    float_accuracy: float
    qat_accuracy: float
    quantized_accuracy: float
    weight_memory: str
    bias_memory: str
    latency_cycles: int
    verified_words: int


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs the stages of a demo: tools of the repository `root`, results in the folder `output`."""

    root: Path
    output: Path

    def __call__(
        self,
        stage: str,
        tool: str,
        *options: str | Path,
        cwd: Path | None = None,
        show: str = "",
    ) -> str:
        """Run one command line, showing it and the lines that match `show`; return the output.

        Of lines in a row that tell the best state so far, only the last one is shown; on a terminal
        another line tells how much of a training is done.
        Paths are given relative to `cwd` (default: the root). The whole output is kept in stages/.
        Raises DiagnosticError naming the stage if it fails; an interrupted one is ended.
        """
        cwd = cwd or self.root
        words = self.words(cwd, tool, *options)
        place = f"cd {shlex.quote(os.path.relpath(cwd))} && " if cwd != Path.cwd() else ""
        print(f"== {stage}\n$ {place}{shlex.join(words)}", flush=True)
        log = self.output / "stages" / f"{stage.replace(' ', '-')}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        status, lines = self._execute(words, cwd, log, re.compile(show))
        if status:
            raise failure(
                f"stage '{stage}' ended with status {status}:\n{''.join(lines[-8:]).rstrip()}",
                f"All it printed is in {log}.",
            )
        print(f"  ({time.monotonic() - start:.1f} s)\n")
        return "".join(lines)

    def words(self, cwd: Path, tool: str, *options: str | Path) -> list[str]:
        """Return the command line of a tool, paths relative to `cwd`."""
        python = (Path(sys.executable),) if tool.endswith(".py") else ()
        return [
            os.path.relpath(word, cwd) if isinstance(word, Path) else word
            for word in (*python, self.root / tool, *options)
        ]

    @staticmethod
    def _execute(
        words: Sequence[str], cwd: Path, log: Path, show: re.Pattern[str]
    ) -> tuple[int, list[str]]:
        """Run a program, copy its lines to the file and to the screen; return status and lines."""
        lines, best = [], ""
        epochs = words[words.index("--epochs") + 1] if "--epochs" in words else "0"
        line_of_time = Progress(log.stem, int(epochs))
        with (
            log.open("w", encoding="utf-8") as file,
            subprocess.Popen(
                words,
                cwd=cwd,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as process,
        ):
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    lines.append(line)
                    file.write(line)
                    if epoch := _EPOCH.match(line):
                        line_of_time.reach(int(epoch[1]) + 1)
                    if not show.search(line):
                        continue
                    if not line.startswith(_BEST):
                        print(f"{best}  {line}", end="", flush=True)
                    best = f"  {line}" if line.startswith(_BEST) else ""
            except BaseException:
                process.terminate()
                raise
            finally:
                line_of_time.close()
        print(best, end="")
        return process.returncode, lines


def failure(message: str, remedy: str, code: str = "E010") -> DiagnosticError:
    """Return the exception that ends the demo with a message and status 1."""
    return refused(code, message, remedy=remedy)


@contextmanager
def alone(output: Path) -> Iterator[None]:
    """Hold the folder `output` for this process; a second run in it is refused."""
    output.mkdir(parents=True, exist_ok=True)
    with (output / ".lock").open("w", encoding="utf-8") as file:
        try:
            lock(file.fileno(), alone=True)
        except BlockingIOError:
            raise failure(
                f"another run is writing to {output}",
                "Wait for it, or choose another folder with --output.",
                "E062",
            ) from None
        yield


def command_of(script: Path) -> list[str]:
    """Return the tool that a script calls, and the options that it gives; Windows has no shell."""
    command = script.read_text(encoding="utf-8").rpartition("\nexec ")[2].replace("\\\n", " ")
    _, *words = shlex.split(command)
    return [word for word in words if not word.startswith("$")]


def fingerprint(root: Path, command: Sequence[str]) -> str:
    """Return a hash of a training's command line and of all files that it depends on."""
    digest = hashlib.sha256(shlex.join(command).encode())
    for source in TRAINING_SOURCES:
        path = root / source
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in files:
            if file.suffix in (".py", ".yaml", ".sh"):
                digest.update(f"\n{file.relative_to(root)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def only_match(folder: Path, pattern: str, besides: Set[Path] = frozenset()) -> Path:
    """Return the one new path in `folder` that matches; raises DiagnosticError otherwise."""
    matches = sorted(set(folder.glob(pattern)) - besides)
    if len(matches) != 1:
        raise failure(
            f"{folder} holds {len(matches)} new results {pattern}, expected one",
            "Remove the folder and run the demo again.",
        )
    return matches[0]


def train(run_stage: Runner, retrain: bool) -> Path:
    """Return the log folder of a finished training, of an earlier one if nothing has changed.

    The file `fingerprint` in it is written last; a folder without it is not finished.
    """
    command = [*command_of(run_stage.root / TRAIN), "--name", "digits", "--validation-split", "0.1"]
    mark = fingerprint(run_stage.root, command)
    folder = run_stage.output / "training"
    earlier = set(folder.glob("digits*"))
    for log_folder in earlier:
        marker = log_folder / "fingerprint"
        if not retrain and marker.is_file() and marker.read_text(encoding="utf-8") == mark:
            print(
                "== train\n  nothing it depends on has changed: the last training is used again\n"
            )
            return log_folder
    try:
        run_stage("train", *command, "--out-dir", folder, show="==> Best|QAT|Dataset sizes")
        log_folder = only_match(folder, "digits*", besides=earlier)
        (log_folder / "fingerprint").write_text(mark, encoding="utf-8")
    except BaseException:
        remove(set(folder.glob("digits*")) - earlier)
        raise
    remove(earlier)
    return log_folder


def remove(folders: Iterable[Path]) -> None:
    """Remove folders with all they hold."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def evaluate(run_stage: Runner, stage: str, checkpoint: Path, *options: str) -> float:
    """Return the accuracy of a checkpoint on the test images in percent."""
    folder = run_stage.output / "evaluation"
    shutil.rmtree(folder, ignore_errors=True)
    network = ("--model", "ai85digitsnet", "--dataset", "digits", "--device", "MAX78000")
    weights = ("--exp-load-weights-from", checkpoint, "--out-dir", folder)
    options = (*network, "--evaluate", *options)
    run_stage(stage, "train.py", *options, *weights, cwd=run_stage.output, show="==> Top1")
    metrics = json.loads(only_match(folder, "*/metrics.json").read_text(encoding="utf-8"))
    return float(metrics["test"]["top1"])


def synthesize(run_stage: Runner, checkpoint: Path, sample: Path) -> int:
    """Write the C project and execute its loader; return the number of words verified."""
    inputs = ("--checkpoint-file", checkpoint, "--sample-input", sample)
    outputs = ("--test-dir", run_stage.output, "--prefix", PROJECT, "--overwrite", "--verify")
    network = ("--device", "MAX78000", "--model", "ai85digitsnet", "--dataset", "digits")
    texts = ("--softmax", "--timer", "0", "--verbose")
    command = ("ai8xize.py", *network, *inputs, *outputs, *texts)
    text = run_stage("synthesize and verify", *command, show="^Wrote|^verified|^SRAM")
    return number(first(r"verified ([\d,]+) accelerator words", text, "verified accelerator words"))


def first(pattern: str, text: str, what: str) -> str:
    """Return what the group of `pattern` matches first; raises DiagnosticError if nothing does."""
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise failure(
            f"ai8xize.py ended well but reports no {what}",
            "This is a defect of the tool; please report it with the lines above.",
        )
    return match[1]


def number(text: str) -> int:
    """Return an integer that is written with thousands separators."""
    return int(text.replace(",", ""))


def collect(run_stage: Runner, retrain: bool) -> Result:
    """Run all stages and return what they found."""
    output = run_stage.output
    training = train(run_stage, retrain)
    best, qat = training / "digits_best.pth.tar", training / "digits_qat_best.pth.tar"
    quantized = output / "digits-q.pth.tar"
    float_accuracy = evaluate(run_stage, "evaluate float", best)
    qat_accuracy = evaluate(run_stage, "evaluate QAT", qat)
    tool, *options = command_of(run_stage.root / QUANTIZE)
    run_stage("quantize", tool, qat, quantized, *options, show=r"^\S+\.weight +\d")
    quantized_accuracy = evaluate(
        run_stage, "evaluate quantized", quantized, "-8", "--save-sample", "0"
    )
    words = synthesize(run_stage, quantized, output / "sample_digits.npy")
    run_stage("run the firmware", "emulate.py", output / PROJECT, show="%|^As in|^PASS")
    log = (output / PROJECT / "log.txt").read_text(encoding="utf-8")
    return Result(
        float_accuracy,
        qat_accuracy,
        quantized_accuracy,
        weight_memory=first(r"^Weight memory: +(.*)$", log, "weight memory"),
        bias_memory=first(r"^Bias memory: +(.*)$", log, "bias memory"),
        latency_cycles=number(first(r"([\d,]+) cycles", log, "latency")),
        verified_words=words,
    )


def table(result: Result) -> str:
    """Return the result as text, one line each."""
    milliseconds = result.latency_cycles / MAX78000.apb_clock_mhz / 1000
    rows = {
        "accuracy, float": f"{result.float_accuracy:.2f} %",
        "accuracy, QAT": f"{result.qat_accuracy:.2f} %",
        "accuracy, quantized (8-bit simulation)": f"{result.quantized_accuracy:.2f} %",
        "weight memory": result.weight_memory,
        "bias memory": result.bias_memory,
        "estimated latency": f"{result.latency_cycles:,} cycles ({milliseconds:.2f} ms at "
        f"{MAX78000.apb_clock_mhz} MHz)",
        "accelerator words verified": f"{result.verified_words:,}",
    }
    width = max(map(len, rows))
    return "".join(f"  {name:<{width}}  {value}\n" for name, value in rows.items())


def main() -> None:
    """Read the options, run the demo, print the table."""
    parser = argparse.ArgumentParser(
        description="Train, quantize, synthesize and verify a network."
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "demo-output",
        metavar="DIR",
        help="folder for everything the demo writes (default: demo-output)",
    )
    parser.add_argument(
        "--retrain", action="store_true", help="train again even if nothing changed"
    )
    args = parser.parse_args()
    output = args.output.resolve()
    start = time.monotonic()
    with alone(output):
        result = collect(Runner(ROOT, output), args.retrain)
    print(f"== result after {time.monotonic() - start:.0f} s\n{table(result)}")
    if result.qat_accuracy - result.quantized_accuracy > LARGEST_LOSS:
        raise failure(
            f"quantization costs {result.qat_accuracy - result.quantized_accuracy:.2f} percentage "
            f"points of accuracy, at most {LARGEST_LOSS} is expected",
            "Training and quantization disagree; please report it.",
        )
    print("PASS")


if __name__ == "__main__":
    sys.exit(run(main))
