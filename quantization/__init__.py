"""From trained floating-point parameters to the integers of the accelerator.

`quantize_checkpoint` chooses a power of two (or a clipping factor) for each layer, rounds weights
and biases, and keeps everything else of the checkpoint. `fuse_batchnorm` folds normalization into
the weights before that. Only numpy is used: the arithmetic follows that of PyTorch to the last bit,
so that the integers are those the network was trained for.
"""

from quantization.batchnorm import fuse_batchnorm
from quantization.convert import Quantized, quantize_checkpoint, weight_names
from quantization.options import ClipMethod, QuantizationOptions
from quantization.report import TensorReport, report_line, report_table

__all__ = [
    "ClipMethod",
    "QuantizationOptions",
    "Quantized",
    "TensorReport",
    "fuse_batchnorm",
    "quantize_checkpoint",
    "report_line",
    "report_table",
    "weight_names",
]
