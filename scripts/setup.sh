#!/usr/bin/env bash
# Create a virtual environment, install requirements.txt and extras of pyproject.toml: setup.sh VENV EXTRA...
#
# Called by the Makefile, which skips it when nothing changed. PYTHON3 chooses the interpreter; pip's
# own variables (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS, ...) choose where wheels come from,
# TORCH=cuda asks for PyTorch with CUDA.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    printf 'error: %s\n  %s\n' "$1" "$2" >&2
    exit 1
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# The interpreter to use: PYTHON3 if given, else the first one that is new enough.
find_python() {
    local candidate
    for candidate in ${PYTHON3:-python3 python3.11 python3.12 python3.13}; do
        if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    fail "no Python 3.11 or newer found (tried: ${PYTHON3:-python3, python3.11, python3.12, python3.13})" \
        "Install Python 3.11 or name an interpreter: make demo PYTHON3=/path/to/python3.11"
}

create_venv() {
    local python
    python=$(find_python)
    "$python" -c 'import venv, ensurepip' 2>/dev/null || fail \
        "$python has no venv module" \
        "Install it (Debian, Ubuntu: apt install python3-venv) or name another interpreter: PYTHON3=..."
    echo "Creating the virtual environment $venv with $python"
    "$python" -m venv --clear "$venv" || fail \
        "the virtual environment $venv could not be created" \
        "See the message above; a full disk or a read-only folder are the usual causes."
}

[ $# -ge 2 ] || fail "usage: setup.sh VENV EXTRA..." "The Makefile calls it: make setup"
venv=$1
shift

# An environment that was moved or whose Python is gone does not run; it is made anew.
if ! new_enough "$venv/bin/python" || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    create_venv
fi

arguments=()
while IFS= read -r requirement; do
    arguments+=("$requirement")
done < <("$venv/bin/python" -c 'import sys, tomllib
extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]
print(*(line for name in sys.argv[1:] for line in extras[name]), sep="\n")' "$@")
echo "Installing requirements.txt and the extras $* (this can take a few minutes)"
# Says what PyTorch takes before anything is downloaded; its options are words without spaces.
read -ra source <<< "$("$venv/bin/python" tools/torch_source.py requirements.txt)"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements.txt "${arguments[@]}" ${source[@]+"${source[@]}"} || fail \
    "pip could not install requirements.txt and the extras $*" \
    "See pip's message above. Without network access, point pip to wheels you have: PIP_NO_INDEX=1 PIP_FIND_LINKS=/folder make setup"
