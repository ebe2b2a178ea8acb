"""Options about the outputs of a network that this one does not honour.

Source: docs/generated-project.md, "The output" and "Softmax".
"""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.diagnostics import Diagnostic, Place, Severity
from ai8xtools.synthesis.emit.options import ProjectOptions
from ai8xtools.synthesis.emit.unload import delivered, layer_offsets, port_obstacle, saturates
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.summary import Summary

_LARGEST_SOFTMAX = 32767  # the index of vendor code that takes the result is a signed 16-bit number


def check_outputs(
    options: ProjectOptions, program: Program, summary: Summary
) -> Iterator[Diagnostic]:
    """Complain about options that do not suit the outputs of the network."""
    if options.softmax:
        yield from _softmax(program, summary)
    if options.uses_unload:
        yield from _scales(options, program, summary)
    if options.uses_unload and not options.ignore_mlator_warning:
        yield from _mlator(options, program, summary)


def _softmax(program: Program, summary: Summary) -> Iterator[Diagnostic]:
    place = summary.last_layer.place.with_option("--softmax")
    if program.output_count > _LARGEST_SOFTMAX:
        yield Diagnostic(
            "E074",
            f"the output has {program.output_count} values, softmax takes {_LARGEST_SOFTMAX}",
            place,
            "Leave out --softmax.",
        )
    if program.output_width == 8:
        yield Diagnostic(
            "W024",
            "the output has 8 bits, which is coarse for softmax",
            place,
            "Use output_width: 32 in the last layer.",
            Severity.WARNING,
        )


def _scales(options: ProjectOptions, program: Program, summary: Summary) -> Iterator[Diagnostic]:
    """Outputs that are delivered without their scale, or too large for 16 bits with it."""
    if options.studio and options.scale_output and (layers := _wrong_there(program, summary)):
        yield Diagnostic(
            "N029",
            f"the values of {layers} are delivered with their sign and limited where they are too "
            "large; the vendor's tool loses the sign of scaled and of 8-bit values, and wraps",
            Place(option="--sdk"),
            "The number, the order and the size of the values are the same.",
            Severity.NOTICE,
        )
    for layer in program.unload:
        index = summary.last_layer.index if layer.layer < 0 else layer.layer
        if not layer.scale_known:
            yield Diagnostic(
                "W027",
                "data of layers with different final scales are unloaded together; they are "
                "delivered as the accelerator holds them",
                summary.last_layer.place,
                "Unload the output of one layer at a time.",
                Severity.WARNING,
            )
        elif layer.scale and not options.scale_output:
            yield Diagnostic(
                "W027",
                f"layer {index} is delivered as the accelerator holds it, without its final scale "
                f"2^{layer.scale}",
                Place(option="--no-scale-output"),
                f"Multiply its values by 2^{layer.scale} in the program, or leave the option out.",
                Severity.WARNING,
            )
        elif layer.width == 8 and saturates(layer):
            yield Diagnostic(
                "W028",
                f"layer {index} is scaled by 2^{layer.scale}, so that values beyond "
                f"{(1 << 15 - layer.scale) - 1} exceed 16 bits and are limited",
                summary.last_layer.place,
                "Use output_width: 32 in that layer, or --no-scale-output.",
                Severity.WARNING,
            )


def _wrong_there(program: Program, summary: Summary) -> str:
    """Name the layers whose values the vendor's tool of today delivers wrongly; empty if none."""
    last = summary.last_layer.index
    layers = [
        last if layer.layer < 0 else layer.layer
        for layer in program.unload
        if layer.width == 8 or layer.scale > 0
    ]
    names = ", ".join(map(str, layers))
    return f"layer {names}" if len(layers) == 1 else names and f"layers {names}"


def _mlator(options: ProjectOptions, program: Program, summary: Summary) -> Iterator[Diagnostic]:
    """Output layers that the transposing ports cannot read, or could read."""
    place, silence = Place(option="--mlator"), "--ignore-mlator-warning silences this."
    layers = delivered(program, options)
    for layer, start in zip(layers, layer_offsets(layers), strict=False):
        index = summary.last_layer.index if layer.layer < 0 else layer.layer
        obstacle = port_obstacle(layer, start)
        if options.mlator and obstacle:
            yield Diagnostic("W021", f"layer {index} is read without it: {obstacle}", place,
                             silence, Severity.WARNING)  # fmt: skip
        elif not options.mlator and obstacle is None:
            yield Diagnostic("N022", f"it would speed up reading the output of layer {index}",
                             place, silence, Severity.NOTICE)  # fmt: skip
