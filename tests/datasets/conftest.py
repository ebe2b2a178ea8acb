"""What the tests of data sets share: a file server on this machine, options, a test of records."""

from __future__ import annotations

import functools
import http.server
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from datasets.own.sets import OwnData, load, open_data
from datasets.own.settings import USUAL, DataSettings

ARGS = Namespace(act_mode_8bit=False, truncate_testset=False)


def opened(name: str, **settings: Any) -> tuple[OwnData, Any, Any]:
    """Return data of one's own by its name in --dataset, and its sets to train and to test."""
    kind, _, path = name.partition(":")
    chosen = DataSettings(**settings).over(USUAL)
    data = open_data(kind, path, chosen)
    return data, *load(data, chosen, ARGS, (True, True))


@pytest.fixture
def args() -> Namespace:
    """Options as a training run gives them to a loader."""
    return Namespace(**vars(ARGS))


@pytest.fixture
def integers() -> Namespace:
    """Options of an evaluation with integers, of the first test item only."""
    return Namespace(act_mode_8bit=True, truncate_testset=True)


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files in silence; `lose` cuts an answer after so many bytes."""

    lose: int | None = None

    def copyfile(self, source, outputfile) -> None:  # type: ignore[no-untyped-def]
        content = source.read()
        outputfile.write(content if self.lose is None else content[: self.lose])

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Return a function that serves a folder and returns its address, which ends with /."""
    servers = []

    def start(folder: Path, lose: int | None = None) -> str:
        handler = type("Handler", (_Handler,), {"lose": lose})
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(handler, directory=str(folder))
        )
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
