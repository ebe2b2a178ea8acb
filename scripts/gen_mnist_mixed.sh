#!/usr/bin/env bash
# Write the C project build/mnist-mixed: ai85net5 with weights of 2, 4 and 8 bits, for MAX78000.
# Further options of ai8xize.py may follow, e.g. --overwrite or --verify.
set -euo pipefail
cd "$(dirname "$0")/.."

exec scripts/gen_mnist.sh --prefix mnist-mixed \
    --config-file networks/mnist-mixed-chw-ai85.yaml \
    --checkpoint-file trained/mnist-ai85net5-mixed-q.pth.tar "$@"
