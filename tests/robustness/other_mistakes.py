"""Further single mistakes: spelling of values, units, anchors, punctuation, options, profiles.

They were written by someone who had not seen the messages; `mistakes.py` has those of the first
kind. `make mistakes` judges both in the same way.
"""

from __future__ import annotations

import contextlib
import io
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.diagnostics.guard import diagnostics_of
from tests.conftest import ROOT
from tests.robustness.mistakes import KEEPING_LINES as KEEPING_LINES_OF_FIRST
from tests.robustness.mistakes import (
    Line,
    Maker,
    Mistake,
    _description,
    _slip,
    files_with_several,
    lines_of,
    measured,
    with_line,
)
from tests.robustness.mistakes import said as said_of_first
from tests.robustness.starts import DESCRIPTION, Start, own_starts

Random = random.Random
POLICY = "policy.yaml"


def _changed(
    start: Start, text: str, line: Line, content: str, kind: str, **named: object
) -> Mistake:
    """Return the mistake that a line has another content."""
    changed = with_line(text, line.number, f"{line.lead}{content}")
    named = {"lines": (line.number,), "key": line.key, **named}
    return _description(start, changed)(kind, content, **named)


def _one(rng: Random, text: str, *keys: str) -> Line | None:
    found = [line for line in lines_of(text) if not keys or line.key in keys]
    return rng.choice(found) if found else None


_SPELLED = {
    "op": (("Convv2d", "(?i)conv2d"), ("Lineal", "(?i)linear"), ("Conv2D_", "(?i)conv2d"),
           ("Passthru", "(?i)passthrough")),
    "activate": (("RELU6", "(?i)relu"), ("Rleu", "(?i)relu"), ("Absolute", "(?i)abs"),
                 ("Sigmoid", "(?i)relu|abs|none")),
    "data_format": (("WHC", "(?i)HWC|CHW"), ("NCHW", "(?i)HWC|CHW"), ("HW", "(?i)HWC|CHW")),
    "eltwise": (("addition", "add"), ("subtract", "sub"), ("xorr", "xor")),
    "flatten": (("ture", "(?i)true|false|expected"), ("1.0", "(?i)true|false|expected")),
    "arch": (("''", "(?i)name|text|empty|expected"),),
}  # fmt: skip


def value_spelled_wrong(rng: Random, start: Start, text: str) -> Mistake | None:
    """A word that is nearly one of those that the key takes."""
    line = _one(rng, text, *_SPELLED)
    if line is None:
        return None
    value, remedy = rng.choice(_SPELLED[line.key])
    shown = re.escape(value) if value != "''" else "''|empty"
    return _changed(start, text, line, f"{line.key}: {value}", "value spelled wrong",
                    value=shown, remedy=remedy)  # fmt: skip


def with_unit(rng: Random, start: Start, text: str) -> Mistake | None:
    """A number with a unit, or two numbers in one."""
    line = _one(rng, text, "out_offset", "in_offset", "pad", "max_pool", "pool_stride",
                "output_width", "write_gap", "output_shift")  # fmt: skip
    if line is None:
        return None
    value = rng.choice(("8K", "16 bytes", "1 px", "2*2", "1e3", "4,4", "two"))
    if value == "1e3" or (value == "4,4" and line.key in ("pad", "max_pool", "pool_stride")):
        return None
    return _changed(start, text, line, f"{line.key}: {value}", "with a unit",
                    value=re.escape(value.strip()), remedy="expected|nearest|Write")  # fmt: skip


def bad_hexadecimal(rng: Random, start: Start, text: str) -> Mistake | None:
    """A mask with a letter that is no digit, without 0x, or with a digit too many."""
    line = _one(rng, text, "processors", "output_processors")
    if line is None or not line.value.startswith("0x"):
        return None
    value = rng.choice((
        line.value[:-1] + "g", line.value.replace("0x", "0xO", 1), line.value.replace("0x", "x"),
        line.value + "ffff.ffff", line.value.replace(".", "_ "), line.value[2:] + "h",
    ))  # fmt: skip
    digits = value.removeprefix("0x").replace(".", "").lstrip("0")
    return _changed(
        start, text, line, f"{line.key}: {value}", "bad hexadecimal",
        value="{}|63|64|{}".format(re.escape(value), r"\.?".join(digits)),
        remedy="expected|mask|63|64|0x",
    ) if value != line.value and digits.isalnum() else None  # fmt: skip


def unknown_anchor(rng: Random, start: Start, text: str) -> Mistake | None:
    """An alias of an anchor that does not exist."""
    line = _one(rng, text)
    if line is None or line.key == "snoop":
        return None
    name = rng.choice(("mask", "base", "common"))
    return _changed(start, text, line, f"{line.key}: *{name}", "unknown anchor",
                    key="", value=name, remedy="(?i)anchor|&")  # fmt: skip


def punctuation(rng: Random, start: Start, text: str) -> Mistake | None:
    """A colon without a space, an equals sign, an open bracket or quote, a comma at the end."""
    line = _one(rng, text, "pad", "out_offset", "kernel_size", "max_pool", "op", "activate")
    if line is None:
        return None
    near = tuple(range(line.number - 1, line.number + 3))
    match rng.randrange(5):
        case 0:
            content, remedy = f"{line.key}:{line.value}", "(?i)space|colon|':'|indentation"
        case 1:
            content, remedy = f"{line.key} = {line.value}", "(?i)colon|':'|key: value"
        case 2:
            content, remedy = f"{line.key}: [{line.value}", "(?i)bracket|']'|\\]"
            near = tuple(range(1, 200))
        case 3:
            content, remedy = f'{line.key}: "{line.value}', "(?i)quot"
            near = tuple(range(1, 200))
        case _:
            content, remedy = f"{line.key}: {line.value},", "(?i)expected|comma|Did you mean"
    return _changed(start, text, line, content, "punctuation", lines=near, key="",
                    value=".", remedy=remedy)  # fmt: skip


def other_style(rng: Random, start: Start, text: str) -> Mistake | None:
    """A key in the style of another language: outOffset, kernel-size."""
    line = _one(rng, text, "out_offset", "kernel_size", "max_pool", "pool_stride", "in_sequences",
                "output_width", "data_format", "output_processors")  # fmt: skip
    if line is None:
        return None
    first, *rest = line.key.split("_")
    key = rng.choice((
        first + "".join(part.title() for part in rest), line.key.replace("_", "-"),
        line.key.replace("_", ""), line.key.replace("_", " "), line.key + "s",
    ))  # fmt: skip
    if key in ("in_sequencess",):
        return None
    return _changed(start, text, line, f"{key}: {line.value}", "key in another style",
                    key=key, remedy=f"\\b{line.key}\\b")  # fmt: skip


def dash_forgotten(rng: Random, start: Start, text: str) -> Mistake | None:
    """The dash in front of a layer is not there: two layers become one."""
    lines = [x for x in lines_of(text) if "- " in x.lead]
    if len(lines) < 2:
        return None
    line = rng.choice(lines)
    changed = with_line(
        text, line.number, f"{line.lead.replace('- ', '  ')}{line.key}: {line.value}"
    )
    near = tuple(range(line.number - 14, line.number + 15))
    return _description(start, changed)(
        "dash forgotten", f"line {line.number}", lines=near, remedy="(?i)dash|'- '|Remove one|list"
    )


_TRAINING = (
    ("--epochs", "ten", "int|whole|number"), ("--epochs", "-3", "below 1|positive|at least|whole"),
    ("--batch-size", "0", "1|positive|at least"), ("--lr", "fast", "number|float"),
    ("--lr", "-0.1", "positive|above|0"), ("--resize", "28*28", "WxH|WIDTHxHEIGHT|28x28"),
    ("--resize", "0", "1|WxH|positive"), ("--augment", "mirrror", "mirror"),
    ("--test-share", "2", "0|1|between"), ("--validation-split", "1.5", "0|1|between"),
    ("--optimizer", "Adamm", "(?i)adam"), ("--window", "100", "128"),
    ("--device", "MAX7800", "MAX78000"), ("--compiler-mode", "fast", "default"),
    ("--qat-version", "3", "1|2"), ("--qat-range", "fitt", "fit"), ("--seed", "x", "number|whole"),
    ("--workers", "-1", "0|number"), ("--label-smoothing", "3", "0|1|between"),
    ("--ema", "2", "0|1|between"), ("--lr-schedule", "cosin", "cosine"),
    ("--summary", "complexity", "compute|model"), ("--momentum", "high", "number"),
    ("--kd-temperature", "0", "positive|above|0"), ("--gpus", "a", "number|N,N|all"),
)  # fmt: skip
_LOADING = (
    ("--clock-divider", "3", "1, 2, 4|choose"), ("--clock-trim", "1,2", "A,B,C|three"),
    ("--boost", "2", "PORT.PIN|2.5"), ("--streaming-layers", "a", "number|LIST|layer"),
    ("--kernel-format", "", "."), ("--input-shape", "3*32*32", "CxHxW|3x32x32"),
    ("--output-width", "16", "8|32"), ("--stop-after", "-2", "0|layer"),
    ("--repeat-layers", "0", "1"), ("--ready-sel", "9", "[0-9]"),
    ("--debugwait", "long", "number|int|whole"), ("--apb-base", "base", "number|0x"),
    ("--energy", "yes", "."), ("--board-name", "", "."), ("--c-filename", "a/b", "."),
    ("--input-offset", "-4", "0"), ("--switch-delay", "x", "number|int|float"),
    ("--diagnostics", "xml", "text|json"), ("--scheme", "row", "rows|MCU"),
)  # fmt: skip


def training_option(rng: Random, start: Start, text: str) -> Mistake | None:
    """A value that an option of train.py does not take."""
    option, value, remedy = rng.choice(_TRAINING)
    args = ("--model", "ai85digitsnet", "--dataset", "digits", option, value)
    return Mistake("option of train.py", f"{option} {value}", args, {}, key=option,
                   value=f"(?i){re.escape(value)}", remedy=remedy, reader="train")  # fmt: skip


def training_option_spelled(rng: Random, start: Start, text: str) -> Mistake | None:
    """An option of train.py with a slip."""
    option = rng.choice(("--epochs", "--batch-size", "--optimizer", "--confusion", "--evaluate",
                         "--qat-policy", "--compress", "--validation-split", "--deterministic",
                         "--exp-load-weights-from", "--resume-from", "--augment"))  # fmt: skip
    wrong = "--" + _slip(rng, option[2:])
    if option.startswith(wrong) or wrong == option:
        return None
    args = ("--model", "ai85digitsnet", "--dataset", "digits", wrong)
    return Mistake("option of train.py with a slip", wrong, args, {}, value=re.escape(wrong),
                   remedy=option, reader="train")  # fmt: skip


def loading_option(rng: Random, start: Start, text: str) -> Mistake | None:
    """A value that an option of ai8xize.py does not take."""
    option, value, remedy = rng.choice([x for x in _LOADING if x[2] != "."])
    made = _description(start, text)(
        "option of ai8xize.py", f"{option} {value}", key=option, value=re.escape(value),
        remedy=remedy,
    )  # fmt: skip
    return replace(made, args=(*start.args, option, value))


_PROFILE = "core: cortex-m4\nflash: 2M\nl1: 640K\nl2: 1M\nstack: 2K\nsimd: dsp\nmul: 1cycle\n"
_LOWBIT = {"dense": "ai85fcbit", "cnn": "ai85cnnbit", "windows": "ai85winbit"}
_IN_PROFILES = (
    ("core", "cortex-m9", "cortex-m4|Known|core"), ("flash", "2Q", "K|M|bytes"),
    ("flash", "-5", "K|M|bytes|positive"), ("l1", "0", "K|M|bytes|positive"),
    ("l1", "lots", "K|M|bytes"), ("stack", "2M", "l1|stack"), ("simd", "neon", "dsp|none"),
    ("mul", "fast", "1cycle|none"), ("l2", "[1]", "K|M|bytes|number"),
    ("core", "[a]", "cortex|text|core"), ("flash", "2 M B", "K|M|bytes"),
)  # fmt: skip
_IN_LOWBIT = (
    ("encoding", "5bit", "(?i)4bitsym|encoding"), ("encodings", "[4bitsym, 4bitsim]", "4bitsym"),
    ("widths", "64", "list|widths"), ("widths", "[64, -1]", "number|at least|list|up to"),
    ("act_bits", "7", "4|8"), ("epochs", "-2", "number|whole|at least|up to"),
    ("epochs", "many", "number|whole"), ("lr", "-1", "number|positive|above"),
    ("lr", "slow", "number"), ("batch_size", "0", "number|must be|limits"),
    ("optimizer", "Adma", "Adam"), ("scheduler", "Cosinus", "Cosine"), ("clip", "octave", "octav"),
    ("augmentation", "sometimes", "true|false"), ("model", "ai85fcbits", "ai85fcbit"),
    ("cnn_width", "wide", "number|whole"),
)  # fmt: skip
_IN_QAT = (
    ("start_epoch", "-1", "0|must be"), ("start_epoch", "30.5", "whole|must be"),
    ("weight_bits", "3", "1, 2, 4|8|must be"), ("weight_bits", "eight", "must be|1, 2"),
    ("shift_quantile", "1.5", "0|1|must be"), ("overrides", "[conv1]", "must|mapping"),
    ("outlier_removal_z_score", "-2", "must be|positive|0"),
)  # fmt: skip
_IN_SCHEDULE = (
    ("milestones", "60", "list|must be"), ("milestones", "[60, x]", "number|list|must be"),
    ("gamma", "small", "number|must be"), ("frequency", "0", "1|must be|positive"),
    ("starting_epoch", "-1", "0|must be"), ("ending_epoch", "soon", "number|whole|must be"),
    ("class", "MultiStepLr", "MultiStepLR"),
)  # fmt: skip
_READ = {
    "profile": _IN_PROFILES, "lowbit": _IN_LOWBIT, "qat": _IN_QAT, "schedule": _IN_SCHEDULE,
}  # fmt: skip


def _source(rng: Random, reader: str) -> str:
    if reader == "profile":
        return _PROFILE
    pattern = {"lowbit": "lowbit_*", "qat": "qat_policy*", "schedule": "schedule*"}[reader]
    return rng.choice(sorted((ROOT / "policies").glob(f"{pattern}.yaml"))).read_text()


def in_other_files(rng: Random, start: Start, text: str) -> Mistake | None:
    """A value that a policy, a schedule, a low-bit policy or a profile does not take."""
    reader = rng.choice(tuple(_READ))
    source = _source(rng, reader)
    found = {line.key: line for line in lines_of(re.sub(r"[ ]+#.*", "", source))}
    if reader == "profile":
        found = {
            x.split(":")[0]: Line(n, "", *x.split(": "))
            for n, x in enumerate(source.splitlines(), 1)
        }
    key, value, remedy = rng.choice(_READ[reader])
    if key not in found:
        return None
    line = found[key]
    changed = with_line(source, line.number, f"{line.lead}{key}: {value}")
    return _in_file(reader, changed, f"{key}: {value}", (line.number,), key,
                    re.escape(value.strip("[]").split(", ")[-1]), remedy)  # fmt: skip


def spelled_in_other_files(rng: Random, start: Start, text: str) -> Mistake | None:
    """A key of these files with a slip, twice, without its space or behind a tab."""
    reader = rng.choice(tuple(_READ))
    source = _source(rng, reader)
    lines = [Line(n, "", *x.split(": ", 1)) for n, x in enumerate(source.splitlines(), 1)
             if re.fullmatch(r"[a-z_0-9]+: [^#]+", x)]  # fmt: skip
    lines = [line for line in lines if len(line.key) > 3]
    if not lines:
        return None
    line = rng.choice(lines)
    at, key, value = (line.number,), line.key, "."
    match rng.randrange(3):
        case 0:
            key = _slip(rng, line.key)
            if key == line.key:
                return None
            content, remedy = (f"{key}: {line.value}",), f"\\b{line.key}\\b"
        case 1:
            content, remedy = (f"{key}: {line.value}",) * 2, "(?i)remove|twice|first"
            at, value = (line.number + 1,), "(?i)twice|second"
        case _:
            content, remedy, value = (f"\t{key}: {line.value}",), "(?i)spaces", "(?i)tab|\\\\t"
            key = ""
    changed = with_line(source, line.number, *content)
    return _in_file(reader, changed, f"{content}", at, key, value, remedy)


def _in_file(
    reader: str, text: str, what: str, lines: tuple[int, ...], key: str, value: str, remedy: str
) -> Mistake:
    name = {"profile": "profile", "lowbit": "low-bit policy", "qat": "policy"}.get(reader, reader)
    return Mistake(name, f"{reader}: {what}", (), {POLICY: text.encode()}, lines=lines, key=key,
                   value=value, remedy=remedy, reader=reader)  # fmt: skip


KEEPING_LINES = (value_spelled_wrong, with_unit, bad_hexadecimal, other_style)
MIXED: tuple[Maker, ...] = (*KEEPING_LINES, *KEEPING_LINES_OF_FIRST)
"""Mistakes of both kinds that leave every other line where it is."""
MAKERS: tuple[Maker, ...] = (
    value_spelled_wrong, with_unit, bad_hexadecimal, unknown_anchor, punctuation, other_style,
    dash_forgotten, training_option, training_option_spelled, loading_option, in_other_files,
    in_other_files, spelled_in_other_files,
)  # fmt: skip


def mistakes(count: int, seed: int) -> Iterator[Mistake]:
    """Yield so many mistakes, of every kind in turn."""
    rng = Random(seed)
    starts = [x for x in own_starts() if b"{" not in x.files[DESCRIPTION]]
    made = number = 0
    while made < count:
        number += 1
        start = rng.choice(starts)
        mistake = MAKERS[number % len(MAKERS)](rng, start, start.files[DESCRIPTION].decode())
        if mistake is not None:
            made += 1
            yield mistake


def said(mistake: Mistake, folder: Path) -> list[Diagnostic]:
    """Return what the tool says about a mistake."""
    readers = {"train": _read_options, "lowbit": _read_recipe, "profile": _read_profile}
    if mistake.reader not in readers:
        return said_of_first(mistake, folder)
    for name, content in mistake.files.items():
        (folder / name).write_bytes(content)
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            readers[mistake.reader](mistake, folder / POLICY)
    except SystemExit:
        return [Diagnostic("usage", errors.getvalue())]
    except Exception as exc:
        return list(diagnostics_of(exc))
    return []


def _read_options(mistake: Mistake, path: Path) -> None:
    from ai8xtools.commands.train.arguments import parse

    parse(list(mistake.args))


def _read_recipe(mistake: Mistake, path: Path) -> None:
    from ai8xtools.training.lowbit.recipe import read_recipe

    read_recipe(str(path))


def _read_profile(mistake: Mistake, path: Path) -> None:
    from ai8xtools.software.profile import read_profile

    read_profile(str(path))


def main() -> int:
    """Print the table of 200 mistakes, and 53 in 20 files; 1 if the goal is missed."""
    return measured(
        lambda options: mistakes(options.count, options.seed + 100),
        lambda options: files_with_several((3,) * 13 + (2,) * 7, options.seed + 100, MIXED),
        said,
    )


if __name__ == "__main__":
    sys.exit(main())
