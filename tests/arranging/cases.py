"""Networks with places by hand: those of networks/, and the vendor's among the known answers."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse.keys import LAYER_KEYS, LAYOUT_KEYS
from device import Chip, chip_named
from tests.conftest import ROOT

KEPT = frozenset({"calcx4", "readahead", "tcalc", "snoop_sequence"})
"""Keys of places that are no matter of choice."""
PLACES = frozenset(
    spelling for key in LAYER_KEYS if key.name in LAYOUT_KEYS - KEPT for spelling in key.spellings
)


@dataclass(frozen=True)
class Case:
    """A description with places by hand, its files, and the options it needs."""

    name: str
    chip: Chip
    description: str
    checkpoint: str
    sample: str
    fifo: bool
    model: str | None = None

    @property
    def by_hand(self) -> ResolveOptions:
        """The options of the description as it is."""
        port = InputPort.FIFO if self.fifo else InputPort.MEMORY
        return ResolveOptions(self.sample, checkpoint_file=self.checkpoint, input_port=port)

    @property
    def left_open(self) -> ResolveOptions:
        """The options of the description without places."""
        return ResolveOptions(self.sample, checkpoint_file=self.checkpoint)

    def stripped(self) -> str:
        """Return the text of the description without any place."""
        return stripped(Path(self.description).read_text())

    def from_model(self) -> str:
        """Return the text of the description that `ai8xize.py --model` makes."""
        from ai8xtools.commands.loader.models import describe_model  # needs torch
        from ai8xtools.commands.loader.options import ModelSource

        assert self.model is not None, f"{self.name} is known by its description only"
        return describe_model(ModelSource(self.model), self.chip, self.checkpoint, self.sample).text


def stripped(text: str) -> str:
    """Return a description without the keys that fix places."""
    whole: dict[str, Any] = yaml.safe_load(text)
    for layer in whole["layers"]:
        for key in PLACES & set(layer):
            del layer[key]
    whole.pop("output_map", None)
    for buffer in whole.get("data_buffer", ()):
        del buffer["processors"], buffer["offset"]
    return yaml.safe_dump(whole, sort_keys=False)


def own_cases(folder: Path) -> Iterator[Case]:
    """Yield the descriptions of networks/ with random weights, made in a folder."""
    from tests.networks.deployed import DEPLOYED, with_random_weights  # needs torch

    for deployed in DEPLOYED:
        place = folder / deployed.file
        place.mkdir(parents=True, exist_ok=True)
        checkpoint, sample = place / "random-q.pth.tar", place / "sample.npy"
        if not sample.exists():
            with_random_weights(deployed, place)
            np.save(sample, deployed.integers())
        yield Case(
            deployed.file, deployed.chip, deployed.path, str(checkpoint), str(sample),
            deployed.fifo, deployed.case.name,
        )  # fmt: skip


def vendor_cases(folder: Path, kat: Path) -> Iterator[Case]:
    """Yield the vendor's demonstrations among the known answers; none where these are absent."""
    for path in sorted(kat.glob("cases/max7800*")):
        if path.name.endswith("-riscv"):
            continue  # the same network again
        case = json.loads((path / "case.json").read_text())
        words, inputs = case["args"], case["inputs"]
        options = dict(pairwise(words))
        sample = options.get("--sample-input") or next(
            name for name in inputs if name.startswith("tests/sample")
        )
        names = (options["--config-file"], options["--checkpoint-file"], sample)
        files = [_unpacked(path, inputs[name], folder / path.name, name) for name in names]
        chip = chip_named(options["--device"])
        yield Case(path.name, chip, *files, fifo="--fifo" in words)


def _unpacked(case: Path, stored: str, folder: Path, name: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    source, target = case / stored, folder / Path(name).name
    if not target.exists():
        data = source.read_bytes()
        target.write_bytes(lzma.decompress(data) if source.suffix == ".xz" else data)
    return str(target)


def default_kat() -> Path:
    """Return where the known answers usually are."""
    return ROOT.parent / "shared" / "kat"
