#!/usr/bin/env bash
# Measure the ai85net5 with weights of 2, 4 and 8 bits on the test images of MNIST, computing as the accelerator does.
# Further options of train.py may follow, e.g. --data DIR, --confusion or --save-sample N.
set -euo pipefail
cd "$(dirname "$0")/.."

exec scripts/evaluate_mnist.sh --exp-load-weights-from trained/mnist-ai85net5-mixed-q.pth.tar "$@"
