#!/usr/bin/env bash
# Train a low-bit network of 12,608 bytes on MNIST: scripts/train_bitnet.sh --data DIR
# Another policy: POLICY=windows or POLICY=cnn. Further options of train.py may follow.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3

policy=${POLICY:-dense}
case "$policy" in windows) model=ai85winbit ;; cnn) model=ai85cnnbit ;; *) model=ai85fcbit ;; esac

# glibc keeps the memory of freed tensors instead of returning it to the system after each of them.
export MALLOC_MMAP_THRESHOLD_=${MALLOC_MMAP_THRESHOLD_:-33554432} MALLOC_TRIM_THRESHOLD_=${MALLOC_TRIM_THRESHOLD_:-1073741824}

exec "$python" train.py --model "$model" --dataset MNIST --qat-policy "policies/lowbit_policy_$policy.yaml" \
    --name "mnist-$policy" "$@"
