"""A network that is loaded into an accelerator, to try with the user's own inputs.

network = LoadedNetwork.of_project("build/mnist", "MAX78000")
run = network.run(image)  # int8 [channel, row, column]
print(run.output(), run.findings)
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.own_input import first_layer, input_shape, set_input
from ai8xtools.emulator.firmware.loader import run_loader
from ai8xtools.emulator.machine.accelerator import Accelerator, NetworkRun
from ai8xtools.emulator.words.recording import read_words
from ai8xtools.emulator.words.writes import Writes
from ai8xtools.values import frozen
from device import Chip, chip_named
from device.chip import DEFAULT_APB_BASE


@frozen
class LoadedNetwork:
    """Everything that is written to an accelerator before it starts, its input included."""

    chip: Chip
    writes: Writes
    apb_base: int = DEFAULT_APB_BASE

    @classmethod
    def of_project(
        cls, project: Path | str, chip_name: str, apb_base: int = DEFAULT_APB_BASE
    ) -> LoadedNetwork:
        """Compile a generated project and take what its loader functions write.

        Raises EmulatorError as `run_loader` does.
        """
        record = run_loader(project, chip_name, apb_base=apb_base)
        return cls(record.chip, record.bus.writes(), apb_base)

    @classmethod
    def of_words(
        cls, recording: Path | str, chip_name: str, apb_base: int = DEFAULT_APB_BASE
    ) -> LoadedNetwork:
        """Take recorded words (.npz). Raises EmulatorError (E801), OSError."""
        return cls(chip_named(chip_name), read_words(Path(recording)).writes, apb_base)

    @property
    def first_layer(self) -> LayerConfig:
        """The configuration of the layer that reads the input."""
        return first_layer(self._loaded().memory)

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Channels, rows and columns of the input; operands count as channels."""
        return input_shape(self._loaded().memory)

    def run(self, image: NDArray[np.integer] | None = None) -> NetworkRun:
        """Execute the network from the start, with the program's own input or another.

        `image`: integers from -128 to 127, [channel, row, column] as in `input_shape`. Raises
        ValueError for another shape or range, and EmulatorError as Accelerator.run does.
        """
        accelerator = self._loaded()
        if image is not None:
            set_input(accelerator.memory, np.asarray(image))
        return accelerator.run()

    def _loaded(self) -> Accelerator:
        accelerator = Accelerator(self.chip, self.apb_base)
        accelerator.write(self.writes)
        return accelerator
