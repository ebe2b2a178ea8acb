#!/usr/bin/env bash
# Quantize the network that scripts/train_mnist.sh trained: quantize_mnist.sh [INPUT [OUTPUT]] [OPTION...]
# Options go to quantize.py, e.g. --clip-method MAX. The variable TRAINED names another network of trained/.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3

name=${TRAINED:-mnist-ai85net5-qat8}
input=trained/$name.pth.tar
output=trained/$name-q.pth.tar
case "${1:--}" in -*) ;; *) input=$1 && shift ;; esac
case "${1:--}" in -*) ;; *) output=$1 && shift ;; esac

exec "$python" quantize.py "$input" "$output" --device MAX78000 --verbose "$@"
