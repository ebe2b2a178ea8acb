"""The network as an ONNX file."""

from __future__ import annotations

import io
import warnings

import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.checkpoint import atomic
from ai8xtools.diagnostics.errors import InputError, reason_of
from ai8xtools.training.export.counting import run
from datasets.errors import library


def write_onnx(model: nn.Module, example: Tensor, path: str, simplify: bool) -> str:
    """Write the network as its layers compute it, or without rounding and clamps (`simplify`).

    The network is changed and must not be used afterwards.
    """
    library("onnx", "writes ONNX files", "--summary")
    run(model, example)
    ai8x.onnx_export_prep(model, simplify)
    buffer = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # dynamo=False: the other exporter needs more packages and ten times the time
            torch.onnx.export(
                model, (example,), buffer, dynamo=False, input_names=["input"],
                output_names=["output"],
            )  # fmt: skip
    except Exception as exc:
        reason = reason_of(exc)
        raise InputError(
            "E648", f"the network cannot be written as ONNX: {reason}", "--summary",
            "Networks of Conv, Linear, pooling and element-wise layers can.",
        ) from exc  # fmt: skip
    atomic.write_bytes(path, buffer.getvalue())
    return f"Saved the network as {path}"
