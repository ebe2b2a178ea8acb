#!/usr/bin/env bash
# Quantize what scripts/train_mnist_mixed.sh trained: quantize_mnist_mixed.sh [INPUT [OUTPUT]] [OPTION...]
# The checkpoint says how many bits each layer has. Options go to quantize.py, e.g. --clip-method MAX.
set -euo pipefail
cd "$(dirname "$0")/.."

TRAINED=mnist-ai85net5-mixed exec scripts/quantize_mnist.sh "$@"
