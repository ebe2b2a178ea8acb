"""The page of --report: what is measured, and each epoch."""

from __future__ import annotations

import re
from typing import Any

from ai8xtools.commands.train.page import page
from ai8xtools.training.options import TrainingOptions
from tests.run_script import run_script

OPTIONS = TrainingOptions(
    arch="net<1>", dataset="folder:x", device=85, command_line="train.py --model 'net<1>'"
)


def epoch(number: int, loss: float, **more: Any) -> dict[str, Any]:
    sides = {"training": {"loss": loss, "top1": 50.0}, "validation": {"loss": 2 * loss}}
    return {"epoch": number, "learning_rate": 0.01, "seconds": 1.5, **sides, **more}


def test_page_has_results_curves_and_epochs() -> None:
    metrics = {
        "epochs": [epoch(3, 0.5), epoch(4, 0.25), epoch(5, 0.125, qat=True)],
        "sizes": {"test": 1200},
        "best": {"epoch": 4},
        "test_best": {"top1": 98.25, "loss": 0.5},
        "accuracy": {
            "floating point": {"right": 9, "count": 10, "chance": 0.5},
            "integers of the chip": {
                "right": 8, "count": 10, "chance": 0.5,
                "confusion": [[5, 2], [0, 3]], "classes": ["a", "b"],
            },
        },
    }  # fmt: skip
    text = page(OPTIONS, metrics)
    assert "<title>net&lt;1&gt; on folder:x</title>" in text and "net<1>" not in text
    assert "98.25" in text and "1,200 test samples" in text and "90.0 %" in text
    assert 'title="a taken for b">2</td>' in text
    rows = re.findall(r"<tr><td class=\"n\">(.*?)</tr>", text)
    assert [row.partition("<")[0] for row in rows] == ["3", "4", "5"]
    # losses from 0.125 to 1 in a height of 220, epochs 3 to 5 in a width of 620
    assert 'points="60.0,140.7 370.0,203.6 680.0,235.0 "' in text
    assert 'class="begin" x1="680.0"' in text and 'class="spot" cx="370.0" cy="140.7"' in text
    assert "http" not in text and len(text) < 20_000


def test_page_of_an_evaluation_has_no_epochs() -> None:
    text = page(OPTIONS, {"epochs": [], "sizes": {"test": 5}, "test": {"top1": 80.0}})
    assert "80" in text and "<svg" not in text and "All epochs" not in text


def test_page_is_refused_where_nothing_is_trained_or_measured() -> None:
    words = ("--model", "ai85digitsnet", "--dataset", "digits", "--report", "x.html")
    done = run_script("train.py", *words, "--summary", "model")
    assert done.returncode == 2 and "--report: only of trainings" in done.stderr
