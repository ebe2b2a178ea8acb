"""The log folder of a run and the links to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai8xtools.training.saving.logs import Log


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_links_show_the_latest_run() -> None:
    for name in ("a", "b"):
        log = Log("logs", name)
        log.close()
        assert Path("latest_log_dir").resolve() == log.folder.resolve()
        assert Path("latest_log_file").resolve() == log.file.resolve()


def test_files_of_the_user_are_not_replaced_by_links() -> None:
    Path("latest_log_file").write_text("mine")
    Path("latest_log_dir").mkdir()
    log = Log("logs", None)
    log.close()
    assert Path("latest_log_file").read_text() == "mine"
    assert list(Path("latest_log_dir").iterdir()) == []
    assert "latest_log_file is not a symbolic link; it stays" in log.file.read_text()


def test_runs_of_the_same_second_have_different_folders() -> None:
    logs = [Log("logs/of/many", "same") for _ in range(2)]
    for log in logs:
        log.close()
    assert logs[0].folder != logs[1].folder


def test_link_to_nowhere_is_refused_as_folder_of_logs() -> None:
    Path("logs").symlink_to("absent")
    with pytest.raises(FileExistsError):
        Log("logs", None)
