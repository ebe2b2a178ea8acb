"""Sources that a compiler would wait for, or read for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ai8xtools.reading import check_sources


def test_folder_of_sources_and_whatever_else_is_taken(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("")
    (tmp_path / "link.h").symlink_to("nowhere")
    (tmp_path / "build").mkdir()
    os.mkfifo(tmp_path / "pipe")
    check_sources(tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "loop", "hole"])
@pytest.mark.parametrize("name", ["a.c", "a.h"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str, name: str) -> None:
    path = tmp_path / name
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
        case "loop":
            path.symlink_to(name)
        case _:
            with path.open("wb") as file:
                file.truncate(1 << 40)
    with pytest.raises(OSError) as refused:
        check_sources(tmp_path)
    assert refused.value.filename == str(path)
