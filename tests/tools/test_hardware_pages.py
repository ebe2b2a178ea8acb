"""The pages of docs/hardware agree with the code, and are enough to write a program from."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from ai8xtools.emulator import Accelerator, Writes
from device import CHIPS, MAX78000, Chip
from tests.conftest import ROOT
from tools.make_docs import BLOCKS
from tools.manual.chips import FEATURES
from tools.manual.examples import complete_program
from tools.manual.markdown import filled, marked
from tools.manual.registers import described_fields

PAGES = sorted((ROOT / "docs").rglob("*.md"))
OF_THE_TOOLS = {"places_flatten_bias_first", "has_trigger_pins", "has_renamed_registers",
                "energy_is_published"}  # fmt: skip
"""Facts of `Chip` that say how the vendor's tools or boards treat a chip, not what it can do."""
LINE = re.compile(r"^(0x[0-9A-F]{8})  ((?:0x[0-9A-F]{8} ?)+)", re.MULTILINE)


def page(name: str) -> str:
    return (ROOT / "docs" / "hardware" / name).read_text()


def test_every_block_stands_on_one_page() -> None:
    assert sorted(name for path in PAGES for name in marked(path.read_text())) == sorted(BLOCKS)


def test_a_marker_without_a_block_is_an_error() -> None:
    text = "before\n<!-- begin some -->\nold\n<!-- end some -->\nafter\n"
    wanted = "before\n<!-- begin some -->\n\nnew\n\n<!-- end some -->\nafter\n"
    assert filled(text, {"some": lambda: "new"}) == wanted
    with pytest.raises(KeyError, match="some"):
        filled(text, {})


@pytest.mark.parametrize("chip", CHIPS, ids=lambda c: c.name)
def test_every_register_and_field_is_described(chip: Chip) -> None:
    text = page("registers.md")
    for register in (*chip.layer_registers.values(), *chip.control_registers.values()):
        if not register.name.startswith("SNP"):
            section = text.partition(f"\n### {register.name}\n")[2].partition("\n### ")[0]
            assert register.about and register.about in section
            for field in described_fields(register):
                assert f"`{field.name}` | {field.meaning}".replace("|-", "\\|-") in section


def test_every_feature_of_a_chip_is_described() -> None:
    assert {f.name for f in fields(Chip) if f.type == "bool"} - OF_THE_TOOLS == set(FEATURES)


def words(text: str) -> list[tuple[int, int]]:
    """Return address and value of every word in lines that begin with an address."""
    found = []
    for line in LINE.finditer(text):
        values = [int(value, 16) for value in line[2].split()]
        found += [(int(line[1], 16) + 4 * i, value) for i, value in enumerate(values)]
    return found


def test_the_words_of_the_complete_program_lead_to_its_result() -> None:
    text = page("execution.md").partition("\n## A complete program\n")[2]
    before, after = text.split("# the result")
    accelerator = Accelerator(MAX78000)
    accelerator.write(Writes.of((4, address, value) for address, value in words(before)))
    run = accelerator.run()
    assert run.findings == []
    output = complete_program().run().activations.outputs[0]
    assert run.output()[:2].tolist() == output.tolist() and output.any(axis=(1, 2)).all()
    data = accelerator.data_words()
    assert len(words(after)) == 16
    assert [data[address] for address, _ in words(after)] == [value for _, value in words(after)]


def test_rules_refer_to_sections_that_exist() -> None:
    text = page("registers.md")
    for name, anchor in set(re.findall(r"\]\(([\w-]+\.md)#([\w-]+)\)", text)):
        headings = re.findall(r"^#+ (.+)$", page(name), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings}
