#!/usr/bin/env bash
# Train a low-bit network of 12,608 bytes on MNIST: scripts/train_bitnet.sh --data DIR
# Another policy: POLICY=windows or POLICY=cnn. Further options of train.py may follow.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3

policy=${POLICY:-dense}
case "$policy" in windows) model=ai85winbit ;; cnn) model=ai85cnnbit ;; *) model=ai85fcbit ;; esac

exec "$python" train.py --model "$model" --dataset MNIST --qat-policy "policies/lowbit_policy_$policy.yaml" \
    --name "mnist-$policy" "$@"
