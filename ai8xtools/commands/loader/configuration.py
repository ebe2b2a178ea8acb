"""The complete description of --write-config: every place that was given or chosen."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.network import Network


def check_configuration(options: LoaderOptions) -> None:
    """Refuse a file that could not be written, before the network is read."""
    path = options.output.configuration
    if path is not None and Path(path).is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)


def write_configuration(options: LoaderOptions, network: Network, layout: Layout) -> None:
    """Write the description, if wanted."""
    if options.output.configuration is None:
        return
    from ai8xtools.checkpoint import atomic
    from ai8xtools.synthesis.configuration import configuration

    title = (
        f"{network.arch} for {options.chip.name}, written by ai8xize.py "
        f"{options.project.tool_version}. Comments behind keys tell why a value was chosen."
    )
    text = configuration(network, layout, title)
    atomic.write_bytes(options.output.configuration, text.encode("utf-8", "backslashreplace"))
