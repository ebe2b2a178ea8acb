"""Alternatives to functions and modules that have no layer."""

from __future__ import annotations

_EXPORTED = "Use convolutions; for a microcontroller, give its ONNX graph (torch.onnx.export)"
_INSTEAD = {
    "relu6": "Use ReLU: the chip limits results at 1 by itself",
    "hardtanh": "Leave it out: the chip limits results to -1..1 by itself",
    **dict.fromkeys(("leakyrelu", "prelu", "elu", "celu", "selu", "gelu", "silu", "swish", "mish",
                     "hardswish", "softplus", "softsign", "thresholdedrelu"), "Use ReLU"),
    "sigmoid": "Use ReLU inside; at the end, compute it in the application",
    "hardsigmoid": "Use ReLU inside; at the end, compute it in the application",
    "tanh": "Use ReLU inside; at the end, compute it in the application",
    "max": "Use functional.adaptive_max_pool2d(x, 1), or adaptive_max_pool1d",
    **dict.fromkeys(("maxpool2dwithindices", "maxpool1dwithindices", "maxpool2d", "maxpool1d"),
                    "Use return_indices=False"),
    "lppool2d": "Use AvgPool2d", "sum": "Use the mean, and larger weights behind it",
    "stack": "Use torch.cat(..., 1)", "neg": "Change the sign of the weights before it",
    "maximum": "Use addition or concatenation", "minimum": "Use addition or concatenation",
    "half": "Leave it out", "float": "Leave it out", "to": "Leave it out",
    "convtranspose1d": "Use Conv1d",
    "dropout": "Use nn.Dropout, or training=self.training",
    "truediv": "Use smaller weights before it; scale samples before the network",
    "div": "Use smaller weights before it; scale samples before the network",
    "mul": "Use addition or concatenation: the chip multiplies by weights only",
    "imul": "Use addition or concatenation: the chip multiplies by weights only",
    "matmul": "Use nn.Linear: the chip multiplies by weights only",
    "pixelshuffle": "Use ConvTranspose2d with stride 2",
    **dict.fromkeys(("layernorm", "layernormalization", "groupnorm", "groupnormalization",
                     "instancenorm2d", "instancenorm1d", "instancenormalization"),
                    "Use BatchNorm behind the convolution"),
    "permute": "Leave the channels on axis 1", "transpose": "Leave the channels on axis 1",
    "chunk": "Use a convolution for each part", "split": "Use a convolution for each part",
    "lstm": "Use Conv1d over the time axis", "gru": "Use Conv1d over the time axis",
    "rnn": "Use Conv1d over the time axis", "multiheadattention": _EXPORTED,
    "transformerencoder": _EXPORTED, "transformerencoderlayer": _EXPORTED,
    **dict.fromkeys(("upsample", "interpolate"),
                    "Use mode='nearest' with scale_factor=2, or ConvTranspose2d"),
    **dict.fromkeys((f"adaptive{kind}pool{axes}d" for kind in ("avg", "max") for axes in (1, 2)),
                    "Choose an output size that divides the input's, such as 1"),
    "batchnorm2d": "Use track_running_stats=True, and train with it",
    "batchnorm1d": "Use track_running_stats=True, and train with it",
    "conv3d": "Use Conv2d over frames, and Conv1d over the time axis",
}  # fmt: skip
"""Alternatives to functions and modules, by name in lower case without underscores."""


def instead_of(name: str) -> str | None:
    """Return the alternative to a function or module; None if none is known."""
    remedy = _INSTEAD.get(name.lower().replace("_", ""))
    return None if remedy is None else f"{remedy}."
