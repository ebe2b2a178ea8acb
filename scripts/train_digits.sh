#!/usr/bin/env bash
# Train ai85digitsnet on the digits that come with scikit-learn: about 10 seconds on 2 cores.
# Further options of train.py may follow, e.g. --name digits or --out-dir DIR.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3

exec "$python" train.py --device MAX78000 --model ai85digitsnet --dataset digits --deterministic \
    --epochs 40 --batch-size 64 --optimizer Adam --lr 0.003 --wd 0 \
    --compress policies/schedule-digits.yaml \
    --qat-policy policies/qat_policy_digits.yaml --qat-range vendor --confusion "$@"
