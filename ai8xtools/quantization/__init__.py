"""From trained floating-point parameters to the integers of the accelerator.

`quantize_checkpoint` chooses a power of two (or a clipping factor) for each layer, rounds weights
and biases, and keeps everything else of the checkpoint. `fuse_batchnorm` folds normalization into
the weights before that. Only numpy is used: the arithmetic follows that of PyTorch to the last bit,
so that the integers are those the network was trained for. `calibration`, for networks trained
without QAT, is imported on demand: it needs torch.
"""

from ai8xtools.quantization.batchnorm import fuse_batchnorm, normalized_layers
from ai8xtools.quantization.convert import Quantized, bits_by_layer, quantize_checkpoint
from ai8xtools.quantization.doubts import weight_names
from ai8xtools.quantization.foreign import foreign_tensors, refuse_foreign
from ai8xtools.quantization.options import (
    Calibration,
    ClipMethod,
    LayerIntegers,
    QuantizationOptions,
)
from ai8xtools.quantization.report import TensorReport, report_line, report_table

__all__ = [
    "Calibration",
    "ClipMethod",
    "LayerIntegers",
    "QuantizationOptions",
    "Quantized",
    "TensorReport",
    "bits_by_layer",
    "foreign_tensors",
    "fuse_batchnorm",
    "normalized_layers",
    "quantize_checkpoint",
    "refuse_foreign",
    "report_line",
    "report_table",
    "weight_names",
]
