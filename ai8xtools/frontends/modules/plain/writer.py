"""Writes the new graph of an imported network: layers that stand for more than one operator.

Source: docs/own-models.md, "An ordinary PyTorch network".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx, nn

import ai8x
from ai8xtools.frontends.layers import Refusal, times
from ai8xtools.frontends.modules.plain.kinds import Step
from ai8xtools.frontends.modules.plain.layers import bordered, doubler, rectifier
from ai8xtools.frontends.windows import MOST_POOLED, stages


class Writer:
    """Holds the new graph and its modules; `notes` say what was rewritten, by node.

    `keywords` go to every layer. What returns a node of the new graph returns None after a refusal.
    """

    def __init__(self, keywords: Mapping[str, Any]) -> None:
        self.refusals: list[Refusal] = []
        self.notes: list[str] = []
        self.graph = fx.Graph()
        self.root = nn.Module()
        self._keywords = keywords

    def _call(self, target: str, module: nn.Module, arguments: tuple[Any, ...]) -> Any:
        """Add a module to the new network and call it."""
        *folders, last = target.split(".")
        place = self.root
        for folder in folders:
            if folder not in dict(place.named_children()):
                place.add_module(folder, nn.Module())
            place = getattr(place, folder)
        place.add_module(last, module)
        return self.graph.call_module(target, arguments)

    def _decimated(self, target: str, stride: int, source: Any, step: Step) -> Any:
        """Write a pooling of single pixels, which keeps each `stride`-th of them."""
        if stride == 1:
            return source
        note = f"{step.path}: its stride {stride} is computed as decimation"
        self.notes.append(note)
        pool = ai8x.MaxPool2d if len(step.taken) == 3 else ai8x.MaxPool1d
        try:
            return self._call(target, pool(1, stride), (source,))
        except AssertionError as exc:
            self.refusals.append(Refusal(step.path, str(exc), "Pool instead of the stride."))
            return None

    def _rectified(self, step: Step, source: Any) -> Any:
        """Write an activation that no layer in front can do."""
        if not step.kind.commutes and len(step.taken) < 2:
            self.refusals.append(Refusal(step.path, "there is no layer in front of it"))
            return None
        images = len(step.taken) != 2
        channels = step.taken[0]
        try:
            layer = rectifier(channels, images, self._keywords, step.kind)
        except AssertionError as exc:
            self.refusals.append(Refusal(step.path, str(exc), "Put it behind a convolution."))
            return None
        self.notes.append(
            f"{step.path}: an activation behind no layer costs a layer with {channels} channels, "
            "whose 1x1 kernels are one"
        )
        return self._call(f"{step.node.name}_activation", layer, (source,))

    def _doubled(self, step: Step, source: Any) -> Any:
        """Write a layer that repeats pixels."""
        channels = step.taken[0]
        try:
            layer = doubler(channels, self._keywords)
        except AssertionError as exc:
            self.refusals.append(Refusal(step.path, str(exc), "Use ConvTranspose2d."))
            return None
        self.notes.append(f"{step.path}: pixels are repeated by transposed kernels that are one")
        return self._call(f"{step.node.name}_doubling", layer, (source,))

    def _pooled(self, step: Step, source: Any, positive: bool) -> Any:
        """Write a pooling."""
        s = step.settings
        if any(s["padding"]):
            source = self._padded(step, source, positive)
            if source is None:
                return None
        parts = stages(s, step.taken)
        result = source
        for number, part in enumerate(parts):
            result = self._pooled_once(step, part, number, result)
            if result is None:
                return None
        if len(parts) > 1:
            windows = ", then ".join(times(part["window"]) for part in parts)
            self.notes.append(f"{step.path}: its window of {times(s['window'])} is pooled in "
                              f"steps, {windows}")  # fmt: skip
        squeezed = len(step.given) == 1 and len(step.taken) > 1
        return self.graph.call_function(torch.flatten, (result, 1)) if squeezed else result

    def _pooled_once(self, step: Step, s: Mapping[str, Any], number: int, source: Any) -> Any:
        """Write one of the poolings that a step takes."""
        images = len(step.taken) == 3
        names = ("AvgPool2d" if images else "AvgPool1d") if s["average"] else (
            "MaxPool2d" if images else "MaxPool1d")  # fmt: skip
        window, stride, dilation = (
            _one(s[key], images) for key in ("window", "stride", "dilation")
        )
        keywords = {} if s["average"] else {"dilation": dilation}
        try:
            if isinstance(stride, tuple) or isinstance(dilation, tuple):
                raise AssertionError(f"stride {stride} and dilation {dilation} differ by axis")
            pool = getattr(ai8x, names)(window, stride, **keywords, **self._keywords)
        except AssertionError as exc:
            why = str(exc).partition(": ")[2] or str(exc)
            remedy = "Use one stride for both axes." if "by axis" in why else _instead(step)
            self.refusals.append(Refusal(step.path, why, remedy))
            return None
        target = step.path if step.module is not None else f"{step.node.name}_pooling"
        taken = target in dict(self.root.named_modules())
        target = f"{step.node.name}_pooling{number or ''}" if taken else target
        return self._call(target, pool, (source,))

    def _bordered(self, step: Step, source: Any) -> Any:
        """Write a layer that puts zeros around a map or beside its channels."""
        border, channels = step.settings["border"], step.settings["channels"]
        if border > 1:
            remedy = "Use a padding of 1, or that of a convolution."
            self.refusals.append(Refusal(step.path, f"its padding is {border}", remedy))
            return None
        try:
            layer = bordered(step.taken[0], channels, border, len(step.taken) == 3, self._keywords)
        except AssertionError as exc:
            self.refusals.append(Refusal(step.path, str(exc), "Use the padding of a convolution."))
            return None
        self.notes.append(f"{step.path}: zeros around data cost a layer with {step.given[0]} "
                          "channels, whose kernels are one in the middle")  # fmt: skip
        return self._call(f"{step.node.name}_border", layer, (source,))

    def _padded(self, step: Step, source: Any, positive: bool) -> Any:
        """Write a layer that puts zeros around a map; a maximum of what is positive is the same."""
        if not step.settings["average"] and not positive:
            self.refusals.append(Refusal(
                step.path, f"its padding is {times(step.settings['padding'])}, and negative values "
                "come into it; on the accelerator zeros stand there",
                "Put a ReLU in front of it, or use padding=0.",
            ))  # fmt: skip
            return None
        try:
            layer = bordered(step.taken[0], (0, 0), 1, len(step.taken) == 3, self._keywords)
        except AssertionError as exc:
            why = str(exc).partition(": ")[2] or str(exc)
            self.refusals.append(Refusal(step.path, f"its padding costs a layer: {why}",
                                         "Use padding=0, or at most 64 channels."))  # fmt: skip
            return None
        channels = step.taken[0]
        self.notes.append(
            f"{step.path}: its padding costs a layer with {channels} channels, whose kernels are "
            "one in the middle"
        )
        return self._call(f"{step.node.name}_padding", layer, (source,))


def _instead(step: Step) -> str:
    """Return what to use instead of a pooling window that the chip does not have."""
    if any(w > MOST_POOLED for w in step.settings["window"]):
        return "Use windows of at most 16, or a size of the map that divides into such."
    return "Pool in several steps."


def _one(values: tuple[int, ...], images: bool) -> Any:
    """Return equal values as one number."""
    return values[0] if len(set(values)) == 1 or not images else values
