"""A network description to start with (--yaml-template)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

import ai8x
from checkpoint import atomic
from device import MAX78000, Chip, chip_of_die
from device.chip import PROCESSORS
from diagnostics.errors import InputError
from frontends.layers import DescribedLayer, times
from frontends.modules.tracing import trace
from frontends.modules.walk import Walk, is_tensor_order
from frontends.text import description_text, sources
from training.catalog.own_file import plain_name
from training.export.placing import ResultLocation, place_all
from training.options import TrainingOptions
from training.policies import qat

FILL_IN = "FILL IN"


@dataclass(frozen=True, slots=True)
class Written:
    """A complete description of `layers` layers, or None and the reason why there is none."""

    text: str | None
    reason: str
    layers: int = 0


Complete = Callable[[nn.Module, Tensor, Chip, TrainingOptions], Written]
"""Chooses all places of a network, as the network loader does."""


def write_template(
    model: nn.Module,
    example: Tensor,
    policy: dict[str, Any] | None,
    options: TrainingOptions,
    complete: Complete | None = None,
) -> str:
    """Write the layers of the network as a description, and return what is left to be done.

    Batch normalization is fused. The bits of weights are those of the checkpoint that fills the
    network, if it was trained with quantization, else the policy's; 8 bits are not written, so that
    the loader takes what the quantized checkpoint says. `complete` chooses processors and offsets.
    Where it cannot, they are starting values, or marked with FILL IN. Raises InputError for a
    network whose data flow cannot be traced or that has no layer.
    """
    assert options.yaml_template is not None
    ai8x.fuse_bn_layers(model)
    if policy is not None and not qat.begun(model):
        ai8x.initiate_qat(model, policy, export=True)
    chip = chip_of_die(options.device) or MAX78000
    written = None if complete is None else complete(model, example, chip, options)
    if written is not None and written.text is not None:
        atomic.write_bytes(options.yaml_template, written.text.encode())
        return (
            f"Saved {written.layers} layers as {options.yaml_template}; nothing is left to fill in"
        )
    walk = Walk(model, trace(model, example), chip)
    entries = walk.entries
    if not entries:
        raise InputError(
            "E650", "the network has no layer that the accelerator computes", "--yaml-template",
            "Build it from the layers of ai8x.",
        )  # fmt: skip
    shape = tuple(example.shape[1:])
    places = place_all(entries, shape, chip)
    if is_tensor_order(model, entries):  # then it needs no names
        for entry in entries:
            entry.weights = None
    text = template_text(entries, places, shape, f"{options.arch} (models/) on {options.dataset} "
                         f"for {chip.name}", options)  # fmt: skip
    atomic.write_bytes(options.yaml_template, text.encode())
    left = text.count(FILL_IN) - 1
    places_left = "1 place is" if left == 1 else f"{left} places are"
    rest = f"{places_left} marked with {FILL_IN}" if left else "nothing is left to fill in"
    saved = f"Saved {len(entries)} layers as {options.yaml_template}; {rest}"
    return saved if written is None else f"{saved}\nThe loader chooses no places: {written.reason}"


def template_text(
    entries: Sequence[DescribedLayer],
    places: Mapping[int, ResultLocation],
    shape: Sequence[int],
    title: str,
    options: TrainingOptions,
) -> str:
    """Return the description as text."""
    head = (
        f"{title}: input {times(shape)}. Written by train.py --yaml-template from the model; "
        f"processors and offsets are starting values, lines with {FILL_IN} need work."
    )
    placement = [_placement(entries, index, places) for index in range(len(entries))]
    notes = [[f"{FILL_IN}: {note}." for note in dict.fromkeys(x.notes)] for x in entries]
    return description_text(
        entries, arch=plain_name(options.arch), dataset=options.dataset, title=head, bits=True,
        placement=placement, notes=notes,
    )  # fmt: skip


def _placement(
    entries: Sequence[DescribedLayer], index: int, places: Mapping[int, ResultLocation]
) -> dict[str, Any]:
    """Return the keys that fix where a layer reads and writes."""
    entry, own = entries[index], places[index]
    keys: dict[str, Any] = {}
    if index == 0:
        keys["data_format"] = "HWC"
    keys["processors"] = _mask(_processors(entry, places))
    if sources(entries, index) or index == 0:
        keys["in_offset"] = f"0x{min(places[n].offset for n in entry.inputs):04x}"
    following = index + 1
    if following < len(entries) and _processors(entries[following], places) != own.processors:
        keys["output_processors"] = _mask(own.processors)
    keys["out_offset"] = f"0x{own.offset:04x}"
    if own.gap:
        keys["write_gap"] = own.gap
    return keys


def _processors(entry: DescribedLayer, places: Mapping[int, ResultLocation]) -> int:
    """Return the processors that hold the input of a layer."""
    mask = 0
    for index in entry.inputs:
        mask |= places[index].processors
    return mask & (1 << PROCESSORS) - 1


def _mask(processors: int) -> str:
    """Return a mask as 0x0123.4567.89ab.cdef."""
    digits = f"{processors:016x}"
    return "0x" + ".".join(digits[place : place + 4] for place in range(0, 16, 4))
