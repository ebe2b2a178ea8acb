#!/usr/bin/env python3
"""Choose where PyTorch comes from, before pip downloads it: torch_source.py REQUIREMENTS...

Prints the options that pip needs on standard output, and what it will take on standard error. The
wheels of Linux bring CUDA, unless they come from PyTorch's own index of wheels without it, which is
asked only where pip's settings name no index of their own. TORCH=cuda in the environment asks for
what pip would take by itself. Runs in an environment that has nothing but pip.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.version import Version

WITHOUT_CUDA = "https://download.pytorch.org/whl/cpu"
_LARGE, _SMALL = "about 3 GB with its libraries", "about 0.2 GB"
_HOW_CUDA = "with CUDA: rm -r .venv && make setup TORCH=cuda"
_HOW_SMALL = f"without CUDA: PIP_EXTRA_INDEX_URL={WITHOUT_CUDA} make setup"


def required(files: Sequence[str]) -> Requirement | None:
    """Return what requirement files say of torch; None if they do not name it."""
    text = "\n".join(Path(file).read_text(encoding="utf-8") for file in files)
    match = re.search(r"^torch\b.*", text, re.MULTILINE)
    return Requirement(match[0].partition("#")[0]) if match else None


def is_installed(requirement: Requirement) -> bool:
    """Whether the environment already has what is required."""
    try:
        return metadata.version("torch") in requirement.specifier
    except metadata.PackageNotFoundError:
        return False


def best(requirement: Requirement, *options: str) -> Version | None:
    """Return the version that pip would take with these options; None if unknown."""
    command = (sys.executable, "-m", "pip", "index", "versions", "torch", *options)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    match = re.search(r"^Available versions: (.+)$", ended.stdout, re.MULTILINE)
    versions = [Version(text) for text in match[1].split(", ")] if match else []
    return max(requirement.specifier.filter(versions), default=None)


def has_own_index() -> bool:
    """Whether pip's settings say where packages come from, so that no other place may be asked."""
    command = (sys.executable, "-m", "pip", "config", "list")
    settings = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return re.search(r"\.(index-url|no-index)=", settings) is not None


def choose(requirement: Requirement, system: str, cuda: bool) -> tuple[str, str]:
    """Return the options that pip needs, and what will be taken."""
    usual = best(requirement)
    name = f"PyTorch {usual}" if usual else "PyTorch"
    if usual is not None and usual.local == "cpu":
        return "", f"{name} without CUDA ({_SMALL}), the one that pip's settings offer"
    if not system.startswith("linux"):
        return "", f"{name} ({_SMALL})"
    if cuda:
        return "", f"{name} from pip's index, with CUDA where that has it ({_LARGE})"
    if not has_own_index():
        ask = ("--index-url", WITHOUT_CUDA, "--retries", "0", "--timeout", "10")
        small = best(requirement, *ask)
        if small is not None and small.local == "cpu" and (usual is None or small > usual):
            sentence = f"PyTorch {small} without CUDA ({_SMALL}); {_HOW_CUDA}"
            return f"--extra-index-url {WITHOUT_CUDA}", sentence
    sentence = f"{name} from pip's index, with CUDA where that has it: {_LARGE} to download"
    return "", f"{sentence}; {_HOW_SMALL}"


def main(files: Sequence[str]) -> None:
    """Print the options and the sentence; nothing if there is nothing to download."""
    requirement = required(files)
    if requirement is None or is_installed(requirement):
        return
    cuda = os.environ.get("TORCH", "").lower() == "cuda"
    options, sentence = choose(requirement, sys.platform, cuda)
    print(options)
    print(sentence, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
