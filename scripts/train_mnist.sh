#!/usr/bin/env bash
# Train ai85net5 on MNIST with quantization-aware training: 12 epochs, about 10 minutes on 2 cores.
# Further options of train.py may follow, e.g. --data DIR or --name mnist.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3

exec "$python" train.py --device MAX78000 --model ai85net5 --dataset MNIST --deterministic \
    --epochs 12 --batch-size 128 --optimizer Adam --lr 0.002 --wd 0 \
    --compress policies/schedule_mnist_short.yaml \
    --qat-policy policies/qat_policy_mnist_short.yaml --qat-range vendor --confusion "$@"
