#!/usr/bin/env bash
# Write the C project build/digits: ai85digitsnet trained on the bundled digits, for MAX78000.
# Further options of ai8xize.py may follow, e.g. --overwrite or --verify.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3

exec "$python" ai8xize.py --device MAX78000 --test-dir build --prefix digits \
    --config-file networks/digits-chw-ai85.yaml \
    --checkpoint-file trained/digits-ai85digitsnet-qat8-q.pth.tar \
    --sample-input tests/sample_digits.npy \
    --softmax --timer 0 --verbose "$@"
