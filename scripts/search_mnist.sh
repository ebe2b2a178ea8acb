#!/usr/bin/env bash
# Search a network for MNIST with at most half of the cycles of ai85net5: 19 epochs of an elastic network, about 10 minutes
# on a free core, then an evolution. Further options of train.py may follow, e.g. --data DIR or --name search.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3

exec "$python" train.py --device MAX78000 --model ai85nasnet_sequential_mnist --dataset MNIST --deterministic \
    --nas --nas-policy policies/nas_policy_mnist.yaml --epochs 19 --batch-size 128 --optimizer Adam --lr 0.002 --wd 0 \
    --compress policies/schedule_nas_mnist.yaml "$@"
