#!/usr/bin/env bash
# Quantize the network that scripts/train_mnist.sh trained: quantize_mnist.sh [INPUT [OUTPUT]] [OPTION...]
# Options go to quantize.py, e.g. --clip-method MAX.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3

input=trained/mnist-ai85net5-qat8.pth.tar
output=trained/mnist-ai85net5-qat8-q.pth.tar
case "${1:--}" in -*) ;; *) input=$1 && shift ;; esac
case "${1:--}" in -*) ;; *) output=$1 && shift ;; esac

exec "$python" quantize.py "$input" "$output" --device MAX78000 --verbose "$@"
