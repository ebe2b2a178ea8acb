#!/usr/bin/env bash
# Write build/bitnet, C of the published low-bit network for a CH32V003 (TRAINED chooses another one).
# Then: make -C build/bitnet && build/bitnet/main, or python emulate.py build/bitnet --core rv32ec --count
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3

exec "$python" ai8xize.py --device BITNET --mcu ch32v003 --test-dir build --prefix bitnet \
    --checkpoint-file "trained/${TRAINED:-mnist-lowbit-dense}.h" --sample-input tests/sample_lowbit.npy \
    --sample-labels tests/sample_lowbit_labels.npy "$@"
