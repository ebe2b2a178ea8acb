"""The program around a library that --application asks for, for the data of the checkpoint.

Source: docs/applications.md.
"""

from __future__ import annotations

import json
from dataclasses import replace

from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.commands.loader.prepare_code import HEADER
from ai8xtools.writing.application import NO_BOARD, ZEPHYR, Application
from ai8xtools.writing.detector import Detector
from datasets.own.preparation import DESCRIPTION, DETECTOR_FILE, Preparation


def application_of(options: LoaderOptions, *, sdk: bool = True) -> Application | None:
    """Return the program that the options ask for, with the vendor's SDK or without; or None."""
    project, files = options.project, dict(options.files)
    if project.application is None:
        return None
    board = project.board_name if sdk or project.board_name == ZEPHYR else NO_BOARD
    chip = options.chip.name if sdk else ""
    result = Application(project.application, project.name, board, head=project.head, chip=chip)
    if DESCRIPTION not in files:
        return result
    facts = json.loads(files[DESCRIPTION])
    how, names = Preparation.of(facts["preparation"]), tuple(facts["classes"])
    detector = files.get(DETECTOR_FILE)
    return replace(
        result, data=how.kind, fold=how.fold, rate=how.rate, header=HEADER in files, names=names,
        detector=None if detector is None else Detector(json.loads(detector), names),
    )  # fmt: skip
