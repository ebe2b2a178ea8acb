"""The data memory over time in words, for the verbose log.

Source: spec/memory.md section 3, spec/registers.md section 6.
"""

from __future__ import annotations

from collections.abc import Iterator

from synthesis.encode.numbering import Numbering
from synthesis.encode.streaming import stream_of
from synthesis.encode.view import LayerView
from synthesis.network import Network
from synthesis.options import EncodeOptions
from synthesis.place import KernelRange
from synthesis.place.lifetimes import DataRange, memory_steps, numbers_text


def ring_buffers(network: Network, options: EncodeOptions) -> dict[int, int]:
    """Return by layer index the words of the ring buffers that streaming layers read."""
    if not network.input_port.is_fifo:
        return {}
    numbering = Numbering.of(network, 1)
    views = (
        LayerView(layer, network, KernelRange(), None, numbering, options.link_layer)
        for layer in network.executed()
        if layer.streaming
    )
    return {view.layer.index: stream_of(view, options).rollover for view in views}


def memory_log(network: Network, options: EncodeOptions) -> Iterator[str]:
    """Yield one line per executed layer: what it reads, writes, and what else is alive."""

    def text(data: DataRange) -> str:
        what = "input" if data.owner < 0 else f"layer {data.owner}"
        gap = data.step_bytes - data.piece_bytes
        apart = f" with gaps of {gap}" if gap else ""
        return (
            f"{what} at 0x{data.begin:04x}-0x{data.end - 1:04x}{apart}"
            f" in {numbers_text(data.instances)}"
        )

    for step in memory_steps(network, ring_buffers(network, options)):
        parts = [f"reads {', '.join(map(text, step.inputs)) or 'no memory'}"]
        parts.append(f"writes {text(step.output)}")
        if step.alive:
            parts.append(f"alive: {', '.join(map(text, step.alive))}")
        for loss in step.losses:
            what = "the input" if loss.owner < 0 else f"layer {loss.owner}"
            why = "which it reads itself" if loss.own_input else "which a later layer needs"
            where = f"0x{loss.begin:04x}-0x{loss.end - 1:04x}"
            parts.append(f"OVERWRITES {what} at {where}, {why}")
        yield f"{network.layer(step.layer)}: {'; '.join(parts)}"
