"""The program around a library that --application asks for, for the data of the checkpoint.

Source: docs/applications.md.
"""

from __future__ import annotations

import json

from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.commands.loader.prepare_code import HEADER
from ai8xtools.writing.application import Application
from datasets.own.preparation import DESCRIPTION, Preparation


def application_of(options: LoaderOptions, *, sdk: bool = True) -> Application | None:
    """Return the program that the options ask for, with the vendor's SDK or without; or None."""
    project, files = options.project, dict(options.files)
    if project.application is None:
        return None
    made = Application(project.application, project.name, project.board_name if sdk else "")
    if DESCRIPTION not in files:
        return made
    how = Preparation.of(json.loads(files[DESCRIPTION])["preparation"])
    return Application(
        made.kind, made.name, made.board, how.kind, how.fold, how.rate, HEADER in files
    )
