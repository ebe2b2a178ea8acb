"""What people usually do next with a checkpoint; told at the end of a run on a terminal."""

from __future__ import annotations

from pathlib import Path

from ai8xtools.diagnostics import note, suggest


def quantize_it(source: str, checkpoint: str) -> None:
    """Suggest to quantize the trained checkpoint that was made of a source."""
    note(subject=source, reason=f"wrote {checkpoint}")
    words = (checkpoint, f"{_stem(checkpoint)}-q.pth.tar", "--device", "MAX78000")
    suggest("quantize.py", *words)


def deploy_it(source: str, checkpoint: str, device: str, *network: str) -> None:
    """Suggest to make a project of the quantized weights that were made of a source; `network` are
    the options that name the network."""
    note(subject=source, reason=f"wrote {checkpoint}")
    words = (*network, "--checkpoint-file", checkpoint, "--device", device)
    suggest("ai8xize.py", *words, "--prefix", _stem(checkpoint), "--test-dir", "projects")


def written_for_cores(checkpoint: str, devices: str) -> str:
    """Return what a checkpoint for microcontrollers is good for; its costs depend on the core."""
    return (
        f"Wrote {checkpoint}: ai8xize.py --device {devices} makes a project of it\n"
        "Memory, time and energy depend on the core: ai8xize.py --fits --device MCU --mcu NAME "
        f"--checkpoint-file {checkpoint} tells what is known"
    )


def _stem(checkpoint: str) -> str:
    return Path(checkpoint).name.partition(".")[0]
