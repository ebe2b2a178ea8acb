"""What `unload` and `data_buffer` describe must be possible in data memory.

Source: docs/network-description.md, "Global keys"; docs/hardware/memory.md, "Addresses";
docs/generated-project.md, "The output".
"""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.diagnostics import Diagnostic, Severity
from ai8xtools.synthesis.parse import Description, Section
from device import Chip
from device.channels import channels_per_pass, passes
from device.chip import WORD_BYTES


def check_sections(description: Description, chip: Chip | None) -> Iterator[Diagnostic]:
    """Complain about data that is delivered from, or buffered in, places that do not exist."""
    if description.placed and chip is not None:
        for key in ("unload", "data_buffer"):
            for section in description.get(key, ()):
                yield from _processors(section, key)
                yield from _memory(section, key, chip)
    yield from _buffers(description)


def _processors(section: Section, key: str) -> Iterator[Diagnostic]:
    """Each channel of a pass stands in the memory of a processor of its own.

    Of one pass, more processors than channels may be delivered, but not buffered.
    """
    channels = section.get("channels")
    count, share = section.get("processors").bit_count(), channels_per_pass(channels)
    if count < share or (count > share and (passes(channels) > 1 or key == "data_buffer")):
        yield Diagnostic(
            "E228",
            f"{key}: 'processors' names {count}, {channels} channels need {share}",
            section.place_of("processors"),
            "Use the output_processors of the layer that writes the data.",
        )


def _memory(section: Section, key: str, chip: Chip) -> Iterator[Diagnostic]:
    """Data consists of words of one memory instance."""
    rows, columns = section.get("dim")
    size = section.get("width", 8) // 8 if key == "unload" else 1
    gap, offset = section.get("write_gap", 0), section.get("offset")
    pieces = rows * columns * passes(section.get("channels"))
    end = offset + WORD_BYTES * size * ((pieces - 1) * (gap + 1) + 1)
    if offset % WORD_BYTES:
        yield Diagnostic(
            "E229",
            f"{key}: 'offset' is 0x{offset:x}, words begin at multiples of {WORD_BYTES}",
            section.place_of("offset"),
            f"The nearest valid value is 0x{offset // WORD_BYTES * WORD_BYTES:x}.",
        )
    if end > chip.instance_bytes:
        yield Diagnostic(
            "E229",
            f"{key}: the data ends at 0x{end - 1:x}, the last byte of a memory instance is "
            f"0x{chip.instance_bytes - 1:x}",
            section.place_of("offset"),
            "Check 'offset', 'dim' and 'channels'.",
        )


def _buffers(description: Description) -> Iterator[Diagnostic]:
    """Layers find a rolling buffer by its name; there is one, of 8-bit values."""
    names = {layer.name for layer in description.layers if layer.name}
    read = [layer.get("in_sequences", ()) for layer in description.layers]
    for number, section in enumerate(description.get("data_buffer", ())):
        name = section.get("name")
        if name in names:
            yield Diagnostic(
                "E230",
                f"data_buffer: the name '{name}' already has another meaning",
                section.place_of("name"),
                "Use another name.",
            )
        elif number:
            message = (
                f"data_buffer: only the first one can be used, '{name}' is number {number + 1}"
            )
            remedy = "Remove it, or make one buffer of both."
            if any(name in (x if isinstance(x, tuple) else (x,)) for x in read):
                yield Diagnostic("E231", message, section.place, remedy)
            else:
                yield Diagnostic("W281", message, section.place, remedy, Severity.WARNING)
        names.add(name)
        if section.get("width", 8) != 8:
            yield Diagnostic(
                "W282",
                f"data_buffer: 'width' is {section.get('width')}, which has no effect",
                section.place_of("width"),
                "Remove the key; the buffer holds 8-bit values.",
                Severity.WARNING,
            )
