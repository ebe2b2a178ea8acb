#!/usr/bin/env bash
# Write the C project build/mnist: ai85net5 trained on MNIST, for MAX78000.
# Further options of ai8xize.py may follow, e.g. --overwrite or --verify.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3

exec "$python" ai8xize.py --device MAX78000 --test-dir build --prefix mnist \
    --config-file networks/mnist-chw-ai85.yaml \
    --checkpoint-file trained/mnist-ai85net5-qat8-q.pth.tar \
    --sample-input tests/sample_mnist.npy \
    --softmax --timer 0 --verbose "$@"
