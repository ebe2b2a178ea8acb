"""A network on a set of inputs, with the program around it or as words alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.checks.finding import LayerFinding
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.firmware.alone import NetworkAlone
from ai8xtools.emulator.firmware.repeated import RepeatedNetwork, result_places
from ai8xtools.emulator.machine.batch import NetworkBatch
from ai8xtools.emulator.state.memory import Memory

Integers = NDArray[np.int64]
Images = NDArray[np.int8]

KEEPS_ARRAYS = ("-O0",)
"""Options of the compiler with which it does not make instructions of the values in arrays."""


class FirmwareOnData:
    """A loaded network on many inputs; with `fast` the program's C runs for the sample only.

    `first_run` is that of the sample, or of zeros where there is none; `sample_is_right` is whether
    its output is as the project expects it, None if unknown. `errors` are findings by which the
    program is wrong. Raises EmulatorError: the input cannot be replaced (E861), with `fast` a
    network that does not run on several inputs at once (E860).
    """

    def __init__(self, network: NetworkAlone, *, fast: bool) -> None:
        self.fast = fast
        self._network = network
        self.input_shape = network.input_shape
        """Channels, rows and columns of an input."""
        image = None if network.has_sample else np.zeros(network.input_shape, np.int8)
        self.first_run = network.run(image)
        self.sample_is_right = network.comparison
        self.errors: list[LayerFinding] = list(self.first_run.errors)
        self.places = result_places(network, self.first_run)
        try:
            if self.may_exit:
                raise EmulatorError(
                    "E860", "the network may end early: data decides what is executed",
                    remedy="Run it without --fast.",
                )  # fmt: skip
            places = self.places.instance, self.places.offset
            self._batch: NetworkBatch | None = NetworkBatch(network.board.accelerator, places)
        except EmulatorError:
            if fast:
                raise
            self._batch = None
        self.sample_values = self._current_values()
        self._repeated = None if fast else RepeatedNetwork(network)

    @property
    def may_exit(self) -> bool:
        """Whether the network may end early."""
        return self._network.board.accelerator.goes_on

    @property
    def cycles(self) -> Integers:
        """Estimated cycles of the accelerator for each input that the program ran on."""
        return np.array([] if self._repeated is None else self._repeated.cycles, np.int64)

    @property
    def memory(self) -> Memory:
        """The registers and memories of the accelerator."""
        return self._network.board.accelerator.memory

    @property
    def array_names(self) -> tuple[str, ...]:
        """Names of the program's arrays into which the inputs are put."""
        return () if self._repeated is None else self._repeated.array_names

    @property
    def batch_size(self) -> int:
        """A number of inputs at which progress can be reported."""
        return self._batch.size if self.fast and self._batch is not None else 1

    def run(self, images: Images) -> Integers:
        """Return the values of the last layer, [input, value], for inputs [input, c, r, c]."""
        if self._repeated is None:
            return self.alone(images)
        return np.concatenate([self._infer(self._repeated, image) for image in images])

    def alone(self, images: Images) -> Integers:
        """Return what the accelerator computes without the program, as `run` does.

        Raises EmulatorError (E860) if it does not run on several inputs at once.
        """
        if self._batch is None:
            raise EmulatorError("E860", "the network does not run on several inputs at once")
        return self.places.values(self._batch.run(images))

    @property
    def can_run_alone(self) -> bool:
        """Whether `alone` works."""
        return self._batch is not None

    def _infer(self, repeated: RepeatedNetwork, image: Images) -> Integers:
        run = repeated.infer(image)
        if run is not None:
            earlier = set(self.errors)
            self.errors += [error for error in run.errors if error not in earlier]
        return self._current_values()

    def _current_values(self) -> Integers:
        """Return the values that the program, or the last layer, delivers now: [1, value]."""
        places = self.places
        if places.of_program:
            result = self._network.unloaded(len(places.instance))
        else:
            data = self.memory.data_bytes
            result = data[places.instance, places.offset % data.shape[1]]
        return places.values(result[None])
