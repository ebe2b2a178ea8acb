"""What people usually do next with a checkpoint; told at the end of a run on a terminal."""

from __future__ import annotations

from pathlib import Path

from ai8xtools.diagnostics import note, suggest


def quantize_it(checkpoint: str) -> None:
    """Suggest to quantize a trained checkpoint."""
    note(subject=checkpoint)
    words = (checkpoint, f"{_stem(checkpoint)}-q.pth.tar", "--device", "MAX78000")
    suggest("quantize.py", *words)


def deploy_it(checkpoint: str, device: str, *network: str) -> None:
    """Suggest to make a project of quantized weights; `network` are the options that name it."""
    note(subject=checkpoint)
    words = (*network, "--checkpoint-file", checkpoint, "--device", device)
    suggest("ai8xize.py", *words, "--prefix", _stem(checkpoint), "--test-dir", "projects")


def _stem(checkpoint: str) -> str:
    return Path(checkpoint).name.partition(".")[0]
