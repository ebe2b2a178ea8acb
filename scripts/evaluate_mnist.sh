#!/usr/bin/env bash
# Measure the quantized ai85net5 on the test images of MNIST, computing as the accelerator does.
# Further options of train.py may follow, e.g. --data DIR, --confusion or --save-sample N.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3

exec "$python" train.py --device MAX78000 --model ai85net5 --dataset MNIST --evaluate -8 \
    --exp-load-weights-from trained/mnist-ai85net5-qat8-q.pth.tar "$@"
