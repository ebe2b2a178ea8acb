"""Whether a program without accelerator computes a network for every input.

Source: docs/proof.md, "Microcontrollers without the accelerator".
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.proof.comparison import differing, first_missing
from ai8xtools.commands.proof.counterexample import Counterexample, counterexample
from ai8xtools.commands.proof.expressions import network_fingerprints
from ai8xtools.commands.proof.judgement import Judgement
from ai8xtools.commands.proof.reference import Expected, Output, Reference
from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.cpu.core import MEMORY_BYTES, RAM, Core
from ai8xtools.emulator.cpu.elf import Image
from ai8xtools.emulator.errors import StoppedError
from ai8xtools.emulator.proof.dataflow import Mark, Values
from ai8xtools.emulator.proof.fingerprints import LANES, Fingerprints, Mixer
from ai8xtools.emulator.proof.kernels import departure
from ai8xtools.emulator.proof.program import TracedProgram
from ai8xtools.reading import source_text
from ai8xtools.reading.progress import tracked
from ai8xtools.software.emit.code import RUNTIME
from ai8xtools.values import frozen
from ai8xtools.writing.symbols import prefixed, unprefixed
from ai8xtools.writing.templates import render

Integers = NDArray[np.int64]
_HOPS = 1000
_KERNELS = "nn_kernels.c"
_LEVELS, _WHOLE_LAYERS = "nn_levels.c", re.compile(r"\bvoid (?:\w+_)?nn_run_(?:planes|channels)\(")
_HEADERS = {
    "nn.h": "nn.h", "nn_slide.c": "slide.c", "nn_slide.h": "slide.h",
    "nn_levels.h": "levels.h", "nn_copies.c": "levels_copies.c",
}  # fmt: skip
"""Other files of kernels, and their names in this version."""
_BUFFER = RAM + MEMORY_BYTES // 2
_CORE, _KERNEL = (
    re.compile(r"\b(?:\w+_)?NN_FOR_(\w+) 1\n"),
    re.compile(r"^(?:\w+_)?nn_kernel (\w+);", re.M),
)


@frozen(slots=False)
class ProgramQuestion(ABC):
    """What is expected, and a compiled program that may compute it, one input at a time.

    A program of a stream takes `hop_bytes` at a time, too.
    """

    reference: Expected
    image: Image
    time_limit: float
    size: int = 1
    hop_bytes: int = 0

    @abstractmethod
    def difference(self) -> str:
        """Return what differs for some input, empty if nothing does; raises EmulatorError if that
        is not known.
        """

    @property
    def orders(self) -> tuple[Integers, ...]:
        """In which order the values of each output are delivered: row, column, channel."""
        return tuple(order_of(layer) for layer in self.reference.outputs)

    @cached_property
    def _core(self) -> Core:
        return Core(self.image)

    def run(self, images: Sequence[Integers]) -> tuple[NDArray[np.uint8], list[Integers]]:
        """Return what the program delivers on the emulated core, one input after the other,
        [input, byte]. The sums of values between layers are not known.
        """
        return np.stack([self._result(self._core, image) for image in images]), []

    def example(self, image: Integers, recipe: str, *, behind: bool = False
                ) -> Counterexample | None:  # fmt: skip
        """Return how the result for an input is another one: of the first inference after reset, or
        of the next one, of a stream hop by hop; `behind`: of the one after that of its complement.
        A program that stops has none.
        """
        core, expected = (
            Core(self.image),
            self.reference.result(self.reference.outputs_for(image), self.orders),
        )
        later = "then hop by hop" if self.hop_bytes else "twice"
        runs = (False, image, recipe), (bool(self.hop_bytes), image, f"{recipe}, {later}")
        if behind:
            runs = (False, ~image, recipe), (False, image, f"{recipe}, behind its complement (~)")
        for hops, given, name in runs:
            try:
                actual = self._result(core, given, hops=hops)
            except StoppedError as error:
                return Counterexample.stopping(given, name, error.message)
            example = Counterexample.of(image, name, expected, actual) if given is image else None
            if example is not None:
                return example
        return None

    def _result(self, core: Core, image: Integers, *, hops: bool = False) -> NDArray[np.uint8]:
        size = sum(
            layer.output_width // 8 * len(order_of(layer)) for layer in self.reference.outputs
        )
        content = image.astype(np.int8).transpose(1, 2, 0).tobytes()
        place = _BUFFER + (len(content) + 15) // 16 * 16
        core.write_memory(_BUFFER, content)
        if not hops:
            core.call("cnn_init", time_limit=self.time_limit)
            core.call("cnn_run", _BUFFER, place, time_limit=self.time_limit)
        for offset in range(0, image.size if hops else 0, self.hop_bytes or 1):
            core.call("cnn_stream", _BUFFER + offset, place, time_limit=self.time_limit)
        return np.frombuffer(core.read_memory(place, size), np.uint8)


@frozen(slots=False)
class CompiledQuestion(ProgramQuestion):
    """A network of layers, and a program."""

    reference: Reference

    def difference(self) -> str:
        """Return what differs for some input, empty if nothing does; raises EmulatorError if that
        is not known.
        """
        return (_compare_stream if self.hop_bytes else _compare)(self)


def judge_program(question: ProgramQuestion, kernels: str = "") -> Judgement:
    """Compare a network with a program; `kernels` tells what is unknown of its kernels.

    The sample and a random input are computed in any case: of kernels, the comparison knows only
    what they are to compute.
    """
    reasons = [kernels] if kernels else []
    try:
        difference = question.difference()
        reasons += [difference] if difference else []
    except EmulatorError as error:
        reasons.append(error.message)
    sample = question.reference.sample
    drawn = np.random.default_rng(0).integers(-128, 128, sample.shape)
    recipe = f"numpy.random.default_rng(0).integers(-128, 128, {sample.shape})"
    tried = (sample, "the sample"), (drawn, recipe)
    example = question.example(*tried[0]) or question.example(*tried[1])
    if example is None and reasons:
        found = (question.example(*one, behind=True) for one in tried)
        example = next(filter(None, found), None)
    if example is None and reasons:
        example = counterexample(question, question.orders)
        if example is not None:  # which has been computed after others
            example = question.example(example.image, example.recipe)
    place = ""
    if example is not None and not example.stopped:
        place = question.reference.place(example.byte, question.orders)
    return Judgement(tuple(reasons), (), example, place, ())


def prefix_of(project: Path) -> str | None:
    """Return what the names of a project's files begin with; None without kernels of its own."""
    names = [path.name for path in project.glob(f"*{_KERNELS}")]
    return names[0].removesuffix(_KERNELS) if len(names) == 1 else None


def without_prefix(image: Image, prefix: str) -> Image:
    """Return a program with the names that it has without a prefix."""
    return replace(
        image,
        symbols={name.removeprefix(prefix): at for name, at in image.symbols.items()},
        objects=tuple((at, size, name.removeprefix(prefix)) for at, size, name in image.objects),
    )


def text_without_prefix(project: Path, prefix: str, name: str) -> str:
    """Return the text of a file, with the names that it has without a prefix; as it is, if the
    prefix before these names does not make the same text.
    """
    text = source_text(project / f"{prefix}{name}")
    plain = unprefixed(text, prefix.removesuffix("_")) if prefix else text
    return plain if _with_prefix(plain, project, prefix) == text else text


def _with_prefix(text: str, project: Path, prefix: str) -> str:
    if not prefix:
        return text
    files = [path.name.removeprefix(prefix) for path in project.glob(f"{prefix}*")]
    return prefixed({**dict.fromkeys(files, ""), "": text}, prefix.removesuffix("_"))[""]


def unknown_kernels(project: Path, prefix: str = "") -> str:
    """Return why the kernels of a project, whose names begin with a prefix, are not those that are
    tested with this version; empty if they are.
    """

    def renamed(text: str) -> str:
        return _with_prefix(text, project, prefix)

    def shipped_text(name: str) -> str:
        return renamed(source_text(RUNTIME / name))

    names = sorted(path.name for path in RUNTIME.glob("*.c"))
    shipped = [shipped_text(name).partition("\n") for name in names]
    includes = {include for include, _, _ in shipped}

    def is_shipped(text: str) -> bool:
        left = "\n".join(line for line in text.splitlines() if line not in includes)
        for body in sorted((body.strip() for _, _, body in shipped), key=len, reverse=True):
            left = left.replace(body, "", 1) if body else left
        return not left.strip()

    header = source_text(project / f"{prefix}nn_kernels.h")
    core = _CORE.search(header)
    kernels = [name.removeprefix(prefix) for name in _KERNEL.findall(header)]
    again = core and render("software/nn_kernels.h.j2", kernels=kernels, core=core[1])
    text = source_text(project / f"{prefix}{_KERNELS}")
    same = {_KERNELS: is_shipped(text), "nn_kernels.h": again and header == renamed(again)}
    for name, own in _HEADERS.items():
        path = project / f"{prefix}{name}"
        if name == "nn.h" or path.is_file():
            same[name] = source_text(path) == shipped_text(own)
    path = project / f"{prefix}{_LEVELS}"
    if path.is_file() and _WHOLE_LAYERS.search(text := source_text(path)):
        same[_LEVELS] = is_shipped(text)
    others = [name for name, is_same in same.items() if not is_same]
    return f"the file {prefix}{others[0]} is not that of this version" if others else ""


def order_of(layer: Output) -> Integers:
    """Return the numbers of an output's values, counted by channel, row and column, in the order in
    which they are delivered: row, column, channel.
    """
    numbers: Integers = np.arange(layer.out_channels * int(np.prod(layer.out_dim)))
    return numbers.reshape(layer.out_channels, -1).T.reshape(-1)


def _compare(question: CompiledQuestion) -> str:
    """Return what differs, empty if nothing does; raises EmulatorError if that is not known.

    An inference begins with unknown data. The next one computes the same, or is compared, too. If
    it leaves the variables of the program as it found them, all later ones are like that. A rolling
    buffer is followed until it holds nothing of the start.
    """
    buffer = question.reference.network.buffer
    return compare_inferences(_Comparing(question), None if buffer is None else buffer.entries)


def compare_inferences(comparing: Comparing, entries: int | None = None) -> str:
    """Return what differs, as `_compare`; `entries` are those of a buffer."""
    program = comparing.program
    program.start()
    states: list[bytes] = []
    marks = [program.mark()]
    for inference in range(2 if entries is None else entries + 1):
        numbers = program.infer()
        states.append(program.state)
        marks.append(program.mark())
        if entries is None and inference and program.flow.repeats(*marks):
            continue
        if difference := comparing.difference(comparing.given(numbers)):
            return difference
    if states[-1] != states[-2]:
        return "inferences leave other variables behind each time"
    return ""


def _compare_stream(question: CompiledQuestion) -> str:
    """Return what differs of a stream, as `_compare`: behind cnn_init(), and behind cnn_run().

    All hops are followed until the variables of the program are for the third time as they were,
    and it computes the same as between the first two times, of nothing older.
    """
    size, hop = question.reference.network.sample.size, question.hop_bytes
    for begun in (False, True):
        comparing = _Comparing(question)
        program, flow = comparing.program, comparing.program.flow
        program.start()
        window: deque[Fingerprints] = deque(maxlen=size // hop)
        if begun:
            window.extend(comparing.given(program.infer()).reshape(-1, hop, LANES))
            if difference := comparing.difference(np.concatenate(window)):
                return difference
        times: defaultdict[bytes, dict[int, Mark]] = defaultdict(dict)
        for number in tracked("Hops", range(_HOPS)):
            first = len(window) + 1 < size // hop
            window.append(comparing.given(program.hop(hop, first=first)))
            if program.period > _HOPS // 2:
                raise departure(f"the rings of the stream are where they were after "
                                f"{program.period} hops, which are too many to follow")  # fmt: skip
            if first:
                continue
            if difference := comparing.difference(np.concatenate(window)):
                return difference
            marks = times[program.state]
            marks[number] = now = program.mark_all()
            if any(
                2 * at - number in marks and flow.goes_on(marks[2 * at - number], mark, now)
                for at, mark in marks.items()
                if at != number
            ):
                break
        else:
            raise departure(f"the stream does not repeat itself within {_HOPS} hops")
    return ""


class Comparing(ABC):
    """Compares one inference of a program after the other with what is expected."""

    program: TracedProgram
    _mixer: Mixer
    _values: Values
    _inputs = 0

    def given(self, numbers: Integers) -> Fingerprints:
        """Return the expressions of new values of the input, which get them."""
        self._inputs += 1
        expressions = self._mixer.numbered(("input", self._inputs), len(numbers))
        self._values.give(int(numbers[0]), expressions)
        return expressions

    @abstractmethod
    def difference(self, given: Fingerprints) -> str:
        """Return how an inference with this input, [row, column, channel], differs; empty if it
        does not.
        """


class _Comparing(Comparing):
    """Compares one inference of a program after the other with those of a network."""

    def __init__(self, question: CompiledQuestion) -> None:
        self._reference = reference = question.reference
        sizes = [layer.output_width // 8 * len(order_of(layer)) for layer in reference.outputs]
        self.program = TracedProgram(
            question.image, reference.network.sample.size, sum(sizes), question.time_limit
        )
        self._mixer = Mixer()
        self._values = Values(self.program.flow, self._mixer)
        self._computed: Mapping[int, Fingerprints] | None = None

    def difference(self, given: Fingerprints) -> str:
        """Return how an inference with this input, [row, column, channel], differs; empty if it
        does not.
        """
        network, values = self._reference.network, self._values
        channels, rows, columns = network.sample.shape
        image = given.reshape(rows, columns, channels, LANES).transpose(2, 0, 1, 3)
        produced = values.compute()
        self._computed = computed = network_fingerprints(
            network, image, self._mixer, average_rounding=self._reference.average_rounding,
            earlier=self._computed,
        )  # fmt: skip
        offset = 0
        for layer in self._reference.outputs:
            expected = computed[layer.index].reshape(-1, LANES)[order_of(layer)]
            width = layer.output_width // 8
            delivered = self.program.result(offset, len(expected), width)
            values.compute()
            wrong = differing(expected, values.of(delivered))
            if len(wrong):
                missing = first_missing(network, computed, [image, produced], "the program")
                return missing or (
                    f"the program delivers another value as byte {offset + width * int(wrong[0])}"
                )
            offset += width * len(expected)
        return ""
