"""Firmware in place of the model: `train.py --evaluate -8 --firmware DIR`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ai8xtools.commands.train.arguments.parser import FirmwareChoice
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.emulator import NetworkAlone
from ai8xtools.emulator.firmware.data_set import KEEPS_ARRAYS, FirmwareOnData
from ai8xtools.emulator.project.tree import TreeOptions

Forward = Callable[[Tensor], Any]

_SHOWN = 5


class FirmwareNetwork:
    """The firmware of a project as a network that `train.py` measures.

    Put around a model with weights, it also compares each output with the model's; `departures`
    holds the numbers of the samples that differ, `count` those that were measured. Raises
    EmulatorError as `FirmwareOnData`.
    """

    def __init__(self, choice: FirmwareChoice, *, compares: bool) -> None:
        project = Path(choice.folder)
        network = NetworkAlone(project, options=TreeOptions(flags=KEEPS_ARRAYS))
        self._firmware = FirmwareOnData(network, fast=choice.fast)
        self._folder, self._compares = choice.folder, compares
        self._forward: Forward | None = None
        self.departures: list[int] = []
        self.count = 0

    def around(self, forward: Forward) -> Forward:
        """Return what runs in place of a model."""
        self._forward = forward
        return self._run

    def summary(self) -> str:
        """Say whether the firmware computes what the model does."""
        if not self._compares:
            return f"Measured on the firmware in {self._folder}"
        if not self.departures:
            return f"As the model: {self.count} samples on the firmware in {self._folder}"
        shown = ", ".join(map(str, self.departures[:_SHOWN]))
        return (
            f"{len(self.departures)} of {self.count} samples depart from the model, the first: "
            f"{shown}"
        )

    def _run(self, inputs: Tensor) -> Tensor:
        values = self._values(inputs)
        outputs = torch.from_numpy(values).to(inputs.device, torch.float32)
        if self._compares:
            assert self._forward is not None
            expected = self._forward(inputs)
            self._compare(outputs, expected)
            outputs = outputs.reshape(expected.shape)
        self.count += len(inputs)
        return outputs

    def _values(self, inputs: Tensor) -> np.ndarray[Any, np.dtype[np.int64]]:
        shape = self._firmware.input_shape
        if inputs[0].numel() != int(np.prod(shape)):
            raise InputError(
                "E864",
                f"the firmware takes inputs of {'x'.join(map(str, shape))}, the data set has "
                f"{'x'.join(map(str, inputs.shape[1:]))}",
                "--firmware",
                "Choose the data set that the network was trained on.",
            )
        images = inputs.detach().cpu().numpy().round().astype(np.int8)
        return self._firmware.run(images.reshape(-1, *shape))

    def _compare(self, outputs: Tensor, expected: Any) -> None:
        if not isinstance(expected, Tensor) or expected[0].numel() != outputs[0].numel():
            raise InputError(
                "E864",
                f"the firmware has {outputs[0].numel()} outputs, the model others",
                "--firmware",
                "Choose the model that the project was made of, or leave out its weights.",
            )
        differs = (outputs != expected.reshape(outputs.shape)).any(dim=1)
        numbers = torch.nonzero(differs).flatten().tolist()
        self.departures += [self.count + number for number in numbers]
