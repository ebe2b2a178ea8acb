#!/usr/bin/env bash
# Pack a low-bit network into a header: scripts/quantize_bitnet.sh [IN.pth.tar OUT.h]
# Without files, the published network of trained/ (TRAINED chooses another one).
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3

name=${TRAINED:-mnist-lowbit-dense}
input=trained/$name.pth.tar
output=trained/$name.h
case "${1:--}" in -*) ;; *) input=$1 && shift ;; esac
case "${1:--}" in -*) ;; *) output=$1 && shift ;; esac

exec "$python" quantize.py "$input" "$output" --device BITNET "$@"
