#!/usr/bin/env bash
# Train ai85net5 on MNIST with weights of 2, 4 and 8 bits: 12 epochs, about 10 minutes on 2 cores.
# Further options of train.py may follow, e.g. --data DIR or --name mnist-mixed.
set -euo pipefail
cd "$(dirname "$0")/.."

exec scripts/train_mnist.sh --qat-policy policies/qat_policy_mnist_mixed.yaml "$@"
