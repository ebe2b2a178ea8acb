"""The console commands of an installed package: each is the script of a checkout.

What an installed package has beside itself (ai8x.py, device/, models/, ...) is searched first, as
Python does for the folder of a script, so that packages of users with these names do no harm.
"""

from __future__ import annotations

import ai8xtools.interrupts  # noqa: F401 - before all else

# isort: split

import runpy
import sys
from functools import partial

from ai8xtools.root import ROOT


def _run(script: str) -> None:
    sys.path.insert(0, str(ROOT))
    runpy.run_path(str(ROOT / script), run_name="__main__")


train = partial(_run, "train.py")
quantize = partial(_run, "quantize.py")
ai8xize = partial(_run, "ai8xize.py")
emulate = partial(_run, "emulate.py")
fuse = partial(_run, "batchnormfuser.py")
