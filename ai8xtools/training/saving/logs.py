"""The log folder of a run: text, numbers for programs, TensorBoard events."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ai8xtools.checkpoint import atomic
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading import MIB, read_bytes, system
from ai8xtools.training.loop.metrics import OBJECTIVE, OVERALL, Scores

DETAIL = (
    logging.DEBUG
)  # lines of single batches: always in the file, on a terminal only if it is one


_MOST_BYTES = 64 * MIB
"""Of a configuration that is kept beside the log."""


class Log:
    """Writes what happens to the console, to `<folder>/<folder>.log` and to `metrics.json`.

    The folder is `<out_dir>/[NAME___]YYYY.MM.DD-HHMMSS`; `latest_log_dir` and `latest_log_file` in
    the working directory point to it. The lines of single batches stay off a console that is not a
    terminal. A `silent` log, of a process that is not the leader, writes nothing at all.
    """

    def __init__(
        self, out_dir: str, name: str | None, tensorboard: bool = False, silent: bool = False
    ) -> None:
        self.metrics: dict[str, Any] = {"epochs": []}
        self._events: Any = None
        self._silent = silent
        self._logger = logging.Logger("train", logging.DEBUG)
        if silent:
            self._logger.addHandler(logging.NullHandler())
            return
        self.folder = _new_folder(Path(out_dir), name)
        self.file = self.folder / f"{self.folder.name}.log"
        console = logging.StreamHandler(sys.stdout)
        console.setLevel(DETAIL if sys.stdout.isatty() else logging.INFO)
        file = logging.FileHandler(self.file, encoding="utf-8")
        file.setFormatter(logging.Formatter("%(asctime)s - %(message)s"))
        for handler in (console, file):
            setattr(handler, "handleError", _raise)  # noqa: B010 - a method of this one object
            self._logger.addHandler(handler)
        for link, target in (("latest_log_dir", self.folder), ("latest_log_file", self.file)):
            reason = _point(link, target)
            if reason:
                self.warn(f"{link} {reason}")
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            self._events = SummaryWriter(str(self.folder))
        self.say(f"Log file for this run: {self.file}")

    def say(self, text: str) -> None:
        """Log a line."""
        self._logger.info(text)

    def warn(self, text: str) -> None:
        """Log a warning."""
        self._logger.warning("WARNING: %s", text)

    def detail(self, text: str) -> None:
        """Log a line about a batch."""
        self._logger.log(DETAIL, text)

    def keep(self, path: str) -> None:
        """Copy a configuration file to the folder `configs`."""
        if self._silent:
            return
        atomic.make_folders(self.folder / "configs")
        content = read_bytes(path, _MOST_BYTES)
        atomic.write_bytes(self.folder / "configs" / Path(path).name, content)

    def save_metrics(self) -> None:
        """Write `metrics` to metrics.json; so far the log, too, is on the disk then."""
        if self._silent:
            return
        atomic.sync(self.file)
        text = json.dumps(self.metrics, indent=2) + "\n"
        atomic.write_bytes(self.folder / "metrics.json", text.encode())

    def scalars(self, prefix: str, values: Mapping[str, float], step: int) -> None:
        """Send numbers to TensorBoard as `prefix/name`; blanks become underscores."""
        if self._events is None:
            return
        for name, value in values.items():
            self._events.add_scalar(f"{prefix}/{name}".replace(" ", "_"), value, step)

    def text(self, tag: str, content: str) -> None:
        """Send a text to TensorBoard."""
        if self._events is not None:
            self._events.add_text(tag, content)

    @property
    def events(self) -> Any:
        """The SummaryWriter of TensorBoard, or None."""
        return self._events

    def close(self) -> None:
        """Finish the files."""
        if self._events is not None:
            self._events.close()
        for handler in self._logger.handlers:
            handler.close()


def _raise(_record: logging.LogRecord) -> None:
    """End the run when a line cannot be written (full disk, closed pipe)."""
    raise


def _new_folder(parent: Path, name: str | None) -> Path:
    """Make a folder named after the time; a second run within the same second waits.

    What runs that were killed left half-written in folders beside it is removed.

    Raises OSError when `parent` is not a folder and cannot become one.
    """
    atomic.make_folders(parent)
    for other in parent.iterdir():
        if (other / f"{other.name}.log").is_file():
            atomic.remove_litter(other)
            atomic.remove_litter(other / "configs")
    while True:
        stamp = time.strftime("%Y.%m.%d-%H%M%S")
        folder = parent / (f"{name}___{stamp}" if name else stamp)
        try:
            folder.mkdir()
            atomic.sync(parent)
            return folder
        except FileExistsError:
            time.sleep(0.1)


def _point(link: str, target: Path) -> str | None:
    """Point the symbolic link `link` of the working directory to `target` where possible.

    Returns why not: a file or folder of the user has this name, or the system refuses links.
    """
    path = Path(link)
    try:
        if path.exists() and not path.is_symlink():
            return "is not a symbolic link; it stays as it is"
        atomic.remove_litter(path.parent, link)
        if not system.UNIX:
            path.unlink(missing_ok=True)  # Windows replaces no link to a folder
        prefix = atomic.temporary_prefix(link)
        with tempfile.TemporaryDirectory(prefix=prefix, dir=path.parent) as scratch:
            temporary = Path(scratch, link)
            temporary.symlink_to(target)
            temporary.replace(path)
        atomic.sync(path.parent)
    except OSError as exc:  # such as a file system without links
        return f"was not made ({exc.strerror}); this run is in {target}"
    return None


def batch_line(phase: str, step: int, steps: int, values: dict[str, float]) -> str:
    """Return the line of a batch: `Epoch: [3][   10/  211]    Overall Loss 0.123456    ...`."""
    width = len(str(steps))
    numbers = "    ".join(f"{name} {value:.6f}" for name, value in values.items())
    return f"{phase}[{step:{width + 2}}/{steps:{width + 2}}]    {numbers}"


def training_values(scores: Scores, rate: float, seconds: float) -> dict[str, float]:
    """Return the numbers of a training line by their names in logs and TensorBoard."""
    losses = {OBJECTIVE: scores.loss, **scores.losses}
    return {OVERALL: losses.pop(OVERALL), **losses, **scores.values, "LR": rate, "Time": seconds}


def copy_folder(folder: Path, destination: str | None) -> None:
    """Copy the log folder of a finished run into the folder `destination`."""
    if destination is None:
        return
    target = Path(destination).expanduser() / folder.name
    try:
        atomic.make_folders(target)
        shutil.copytree(folder, target, dirs_exist_ok=True)
        for path in (target, *target.rglob("*")):
            atomic.sync(path)
    except (OSError, shutil.Error) as exc:
        raise InputError(
            "E644",
            f"the log folder {folder} cannot be copied: {exc}",
            "--copy-output-folder",
            "The results are complete in the log folder; copy it by hand.",
        ) from exc
