"""make measure WHAT=pages: the reports in Chromium, at three widths and in both schemes.

Each page is looked at for what is wider than the window, and by axe-core. It needs Chromium, and
`pip install playwright axe-playwright-python`, which are large and used here only.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ai8xtools.commands import targets
from ai8xtools.commands.train.page import page as training_page
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.values.accuracy import Accuracy
from tests.conftest import ROOT
from tests.training.test_training_page import OPTIONS, epoch

ACCURACY = Accuracy.of([[5, 1, 0], [0, 2, 1], [0, 0, 3]], ["circle", "square", "triangle"])
WIDTHS = (360, 800, 1600)
SCHEMES = ("light", "dark")
DIGITS = ["--config-file", str(ROOT / "networks/digits-chw-ai85.yaml"),
          "--checkpoint-file", str(ROOT / "trained/digits-ai85digitsnet-qat8-q.pth.tar"),
          "--sample-input", str(ROOT / "tests/sample_digits.npy")]  # fmt: skip
LOADED = {
    "accelerator": ["--device", "MAX78000"],
    "microcontroller": ["--device", "MCU", "--mcu", "stm32l4r5"],
    "levels": ["--device", "MCU", "--mcu", "stm32h743", "--l1", "3K", "--dma"],
    "too large": ["--device", "MCU", "--mcu", "ch32v003"],
}


def pages(folder: Path) -> Iterator[Path]:
    """Write the pages, and yield them; a network that is refused has one, too."""
    for name, words in LOADED.items():
        page = folder / f"{name.replace(' ', '-')}.html"
        line = [*words, *DIGITS, "--prefix", name.replace(" ", "_"), "--test-dir", str(folder)]
        with contextlib.suppress(DiagnosticError):
            targets.main("ai8xize.py", [*line, "--overwrite", "--report", str(page)])
        yield page
    page = folder / "quantize.html"
    files = [str(ROOT / "trained/digits-ai85digitsnet-qat8.pth.tar"), str(folder / "q.pth.tar")]
    targets.main("quantize.py", [*files, "--device", "MAX78000", "--report", str(page),
                                 "--report-data", "digits"])  # fmt: skip
    yield page
    page = folder / "training.html"
    trained = {
        "epochs": [epoch(n, 1 / (n + 1), qat=n > 5) for n in range(9)], "sizes": {"test": 12},
        "best": {"epoch": 7}, "accuracy": {"integers of the chip": asdict(ACCURACY)},
    }  # fmt: skip
    page.write_text(training_page(OPTIONS, trained))
    yield page


def complaints(tab: Any, axe: Any) -> list[str]:
    """Return what is wider than the window, and what axe-core says."""
    wide = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
    found = [] if wide <= 0 else [f"{wide} pixels too wide"]
    return found + [f"{one['impact']} {one['id']}: {one['nodes'][0]['html'][:100]}"
                    for one in axe.run(tab).response["violations"]]  # fmt: skip


def main() -> int:
    """Look at all pages; pictures of them stay in the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "pages")
    folder = parser.parse_args().folder
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from axe_playwright_python.sync_playwright import Axe
        from playwright.sync_api import sync_playwright
    except ImportError:
        browser = None
    if browser is None:
        print("error: it needs Chromium, and pip install playwright axe-playwright-python",
              file=sys.stderr)  # fmt: skip
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    wrong = 0
    made = list(pages(folder))
    with sync_playwright() as play:
        window = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for page in made:
            for scheme in SCHEMES:
                for width in WIDTHS:
                    tab: Any = window.new_page(
                        viewport={"width": width, "height": 900}, color_scheme=scheme
                    )
                    tab.goto(page.as_uri())
                    tab.screenshot(path=folder / f"{page.stem}-{width}-{scheme}.png",
                                   full_page=True)  # fmt: skip
                    found = complaints(tab, Axe())
                    wrong += len(found)
                    print(f"{page.name:<22} {width:>5} {scheme:<6}", "; ".join(found) or "right")
                    tab.close()
        window.close()
    print(f"{len(made)} pages, {wrong} complaints")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
