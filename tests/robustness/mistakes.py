"""Mistakes as people make them, one in each file or command line: `make mistakes`.

Each mistake knows where it stands, what it is about and what would cure it. A message counts if it
names the line (or the option), the key, the value and the remedy, all in one diagnostic. The table
counts by kind; the exit status is 1 below 98 % in any of the four.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.diagnostics import Diagnostic
from ai8xtools.diagnostics.guard import diagnostics_of
from tests.conftest import ROOT
from tests.robustness.starts import CHECKPOINT, DESCRIPTION, Start, own_starts

Random = random.Random
_KEY = re.compile(r"^(?P<lead>[ ]*(?:- )?)(?P<key>[a-z_]+): (?P<value>[^#\n]*?)[ ]*$")
GOAL = 0.98


@dataclass(frozen=True)
class Mistake:
    """One mistake: the files and arguments with it, and what a message must say.

    `lines` are those that may be named, `words` (key, value) stand in its message, `remedy` is a
    pattern for message and remedy.
    """

    kind: str
    what: str
    args: tuple[str, ...]
    files: dict[str, bytes] = field(repr=False)
    lines: tuple[int, ...] = ()
    key: str = ""
    value: str = ""
    remedy: str = "."
    reader: str = "description"
    """What reads the file `policy.yaml` if it is no description."""


@dataclass(frozen=True)
class Line:
    """A line `key: value` of a description."""

    number: int
    lead: str
    key: str
    value: str


def lines_of(text: str) -> list[Line]:
    """Return the lines of a text that hold a key and a value."""
    found = []
    for number, content in enumerate(text.split("\n"), 1):
        match = _KEY.match(content)
        if match and match["value"]:
            found.append(Line(number, match["lead"], match["key"], match["value"]))
    return found


def with_line(text: str, number: int, *contents: str) -> str:
    """Return a text in which other lines take the place of one, numbered from 1."""
    lines = text.split("\n")
    lines[number - 1 : number] = contents
    return "\n".join(lines)


def _slip(rng: Random, word: str) -> str:
    """Return a word with one slip of a finger."""
    at = rng.randrange(1, len(word))
    return rng.choice((
        word[:at] + word[at + 1 :],
        word[:at] + word[at - 1] + word[at:],
        word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :],
        word[:at] + rng.choice("aeinorst") + word[at:],
    ))  # fmt: skip


_OUTSIDE: dict[str, tuple[tuple[str, str], ...]] = {
    "pad": (("7", "0|1|2"), ("-1", "0")),
    "stride": (("3", "1|pool_stride"), ("17", "16|pool_stride")),
    "max_pool": (("17", "16"), ("0", "1")),
    "avg_pool": (("20", "16"), ("-2", "1")),
    "pool_stride": (("17", "16"), ("0", "1")),
    "quantization": (("3", "2|4"), ("16", "8")),
    "output_shift": (("40", "15|limit|to"), ("-60", "limit|to")),
    "output_width": (("16", "8|32"), ("64", "32")),
    "kernel_size": (("5x5", "1x1|3x3|small kernels|kernel_size: 5"), ("11", "9|1x1|3x3")),
    "out_offset": (("0x200000", "0x"), ("-4", "0")),
    "in_offset": (("-4", "0"),),
    "dilation": (("5000", "2047|limit|dilation"), ("0", "1")),
    "write_gap": (("-1", "0"), ("5000", "limit")),
    "operands": (("17", "16"), ("1", "2")),
    "in_dim": (("0", "1"),),
    "bias_group": (("[0, 4]", "3"),),
    "processors": (("0", "mask"), ("0x1.0000.0000.0000.0000", "63")),
    "groups": (("0", "1"),),
    "in_channels": (("0", "1"),),
    "output_processors": (("0", "mask"),),
}
_TYPES: dict[str, tuple[str, ...]] = {
    "pad": ("one", "[1, 2, 3]", "1.5", "{a: 1}"),
    "max_pool": ("two", "[2]", "2.0"),
    "pool_stride": ("big", "null", "2.5"),
    "processors": ("all", "[0, 1]", "true"),
    "out_offset": ("high", "[0]", "1.5"),
    "activate": ("LeakyReLU", "3", "true"),
    "op": ("Conv3d", "7", "[Conv2d]"),
    "flatten": ("maybe", "2", '"true"'),
    "output_width": ("wide", "8.5"),
    "quantization": ("four", "true"),
    "kernel_size": ("3*3", "[3, 3]", "3.0"),
    "data_format": ("HCW", "1"),
    "in_sequences": ("{a: 1}", "1.5"),
    "name": ("[a]", "5"),
    "arch": ("5", "[a]"),
    "eltwise": ("plus", "1"),
    "output_shift": ("left", "1.5"),
    "streaming": ("often", "2"),
}


def _description(start: Start, text: str, **more: object) -> Callable[..., Mistake]:
    """Return what makes a mistake in a description."""
    files = {**start.files, DESCRIPTION: text.encode()}

    def made(kind: str, what: str, **named: object) -> Mistake:
        return Mistake(kind, f"{start.name}: {what}", start.args, files, **named)  # type: ignore[arg-type]

    return made


def slip_in_key(rng: Random, start: Start, text: str) -> Mistake | None:
    """A letter too many, missing or in the wrong place in a key."""
    line = rng.choice([line for line in lines_of(text) if len(line.key) > 3])
    key = _slip(rng, line.key)
    if key == line.key:
        return None
    changed = with_line(text, line.number, f"{line.lead}{key}: {line.value}")
    return _description(start, changed)(
        "slip in a key", f"{key}", lines=(line.number,), key=key, remedy=f"\\b{line.key}\\b"
    )


def value_outside(rng: Random, start: Start, text: str) -> Mistake | None:
    """A number beyond what the key takes."""
    lines = [line for line in lines_of(text) if line.key in _OUTSIDE]
    if not lines:
        return None
    line = rng.choice(lines)
    value, remedy = rng.choice(_OUTSIDE[line.key])
    changed = with_line(text, line.number, f"{line.lead}{line.key}: {value}")
    shown = value.strip("[]").split()[-1]
    return _description(start, changed)(
        "value outside", f"{line.key}: {value}", lines=(line.number,), key=line.key,
        value="63|64" if ".0000." in value else "no processor|0" if value == "0" else shown,
        remedy=remedy,
    )  # fmt: skip


def wrong_type(rng: Random, start: Start, text: str) -> Mistake | None:
    """A word instead of a number, a list instead of a value, ..."""
    lines = [line for line in lines_of(text) if line.key in _TYPES]
    if not lines:
        return None
    line = rng.choice(lines)
    value = rng.choice(_TYPES[line.key])
    changed = with_line(text, line.number, f"{line.lead}{line.key}: {value}")
    shown = {"[": "list", "{": "mapping", "n": "null|none|empty|nothing"}
    word = shown.get(value[0]) if value[0] != "n" or value == "null" else None
    return _description(start, changed)(
        "wrong type", f"{line.key}: {value}", lines=(line.number,), key=line.key,
        value=word or re.escape(value.strip('"')), remedy="expected|Did you mean|Write|nearest",
    )  # fmt: skip


def missing_key(rng: Random, start: Start, text: str) -> Mistake | None:
    """A key that is needed is not there."""
    lines = lines_of(text)
    of_layers = [line for line in lines if line.lead]
    wanted = [line for line in lines if line.key in ("arch", "dataset")]
    wanted += [line for line in of_layers if line.key == "processors" and "- " not in line.lead]
    line = rng.choice(wanted)
    first = max(
        (x.number for x in of_layers if "- " in x.lead and x.number <= line.number), default=0
    )
    top = min(x.number for x in lines)
    changed = with_line(text, line.number)
    # a layer begins where it began; a file without its first key with the next line
    at = (first,) if first else (1, top, top + 1)
    return _description(start, changed)(
        "missing key", f"without {line.key}", lines=at, key=line.key, value="missing",
        remedy="Add",
    )  # fmt: skip


def wrong_indentation(rng: Random, start: Start, text: str) -> Mistake | None:
    """A line of a layer begins one or two columns too far left or right."""
    lines = [x for x in lines_of(text) if x.lead and "- " not in x.lead]
    line = rng.choice(lines)
    lead = rng.choice((line.lead + " ", line.lead[:-1]))
    changed = with_line(text, line.number, f"{lead}{line.key}: {line.value}")
    near = (line.number - 1, line.number, line.number + 1)
    return _description(start, changed)(
        "indentation", f"{line.key} at {len(lead)}", lines=near, remedy="(?i)indentation"
    )


def key_twice(rng: Random, start: Start, text: str) -> Mistake | None:
    """A line stands in a layer for the second time."""
    line = rng.choice(lines_of(text))
    lead = line.lead.replace("- ", "  ")
    again = f"{lead}{line.key}: {line.value}"
    here = text.split("\n")[line.number - 1]
    changed = with_line(text, line.number, here, again)
    return _description(start, changed)(
        "key twice", line.key, lines=(line.number + 1,), key=line.key,
        value=f"second time.*line {line.number}", remedy="Remove one",
    )  # fmt: skip


def tab(rng: Random, start: Start, text: str) -> Mistake | None:
    """A line begins with a tab."""
    line = rng.choice([x for x in lines_of(text) if x.lead and "- " not in x.lead])
    changed = with_line(text, line.number, f"\t{line.key}: {line.value}")
    return _description(start, changed)(
        "tab", line.key, lines=(line.number,), value="(?i)tab|\\\\t", remedy="(?i)spaces"
    )


def _layers(text: str) -> list[tuple[int, int]]:
    """Return first line and end of each layer."""
    lines = text.split("\n")
    begin = next(i for i, x in enumerate(lines) if x.startswith("layers:"))
    after = next((i for i in range(begin + 1, len(lines)) if re.match("[a-z]", lines[i])), None)
    first = [i for i in range(begin, after or len(lines)) if re.match("[ ]*- [a-z_]+:", lines[i])]
    ends = [*first[1:], after or len(lines)] if first else []
    return [(a + 1, b + 1) for a, b in zip(first, ends, strict=True)]


def _layer_of(text: str, number: int) -> int:
    """Return in which layer a line stands; -1 in front of them."""
    return sum(first <= number for first, _ in _layers(text)) - 1


def layer_left_out(rng: Random, start: Start, text: str) -> Mistake | None:
    """A layer is missing; the weights are for one more."""
    layers = _layers(text)
    if len(layers) < 3 or "trained" not in start.name:  # others may be whole without it
        return None
    first, end = rng.choice(layers[1:-1])
    lines = text.split("\n")
    changed = "\n".join(lines[: first - 1] + lines[end - 1 :])
    return _description(start, changed)(
        "layer left out", f"lines {first} to {end - 1}",
        remedy="which is missing|layer may be missing",
    )  # fmt: skip


def layer_twice(rng: Random, start: Start, text: str) -> Mistake | None:
    """A layer stands in the list for the second time."""
    layers = _layers(text)
    if not layers:  # written in braces
        return None
    first, end = rng.choice(layers)
    lines = text.split("\n")
    block = lines[first - 1 : end - 1]
    changed = "\n".join(lines[: end - 1] + block + lines[end - 1 :])
    if not any("name:" in x for x in block):  # may be meant
        return None
    return _description(start, changed)(
        "layer twice", f"lines {first} to {end - 1}", lines=tuple(range(end, 2 * end - first)),
        value="already stands|second time", remedy="of its own",
    )  # fmt: skip


def wrong_mask(rng: Random, start: Start, text: str) -> Mistake | None:
    """A processor too many or too few."""
    mask = re.compile("0x[0-9a-f.]+")
    lines = [x for x in lines_of(text) if x.key == "processors" and mask.fullmatch(x.value)]
    if not lines:
        return None
    line = rng.choice(lines)
    number = int(line.value.replace(".", ""), 16)
    bits = [b for b in range(number.bit_length()) if number >> b & 1]
    if len(bits) > 62 or len(bits) < 2:
        return None
    other = number ^ (1 << rng.choice((bits[-1], bits[-1] + 1)))
    value = f"0x{other:016x}"
    changed = with_line(text, line.number, f"{line.lead}{line.key}: {value}")
    count = other.bit_count()
    return _description(start, changed)(
        "wrong mask", f"{line.key}: {value}", lines=(line.number,), key="processors",
        value=f"\\b{count}\\b|0x{other:x}|{value}", remedy=f"\\b{number.bit_count()}\\b|processors",
    )  # fmt: skip


def wrong_reference(rng: Random, start: Start, text: str) -> Mistake | None:
    """in_sequences names a layer with a slip."""
    lines = [
        x for x in lines_of(text) if x.key == "in_sequences" and re.search("[a-z]{3}", x.value)
    ]
    if not lines:
        return None
    line = rng.choice(lines)
    name = rng.choice(re.findall("[a-z_0-9]{3,}", line.value))
    slipped = _slip(rng, name)
    if slipped in text or slipped == name:
        return None
    changed = with_line(
        text, line.number, f"{line.lead}{line.key}: {line.value.replace(name, slipped)}"
    )
    return _description(start, changed)(
        "wrong reference", slipped, lines=(line.number,), key="in_sequences",
        value=slipped, remedy=f"\\b{name}\\b",
    )  # fmt: skip


def missing_file(rng: Random, start: Start, text: str) -> Mistake | None:
    """A file is not where the option says."""
    args = list(start.args)
    places = [
        i for i, x in enumerate(args) if x.endswith(("-file", "-input")) and x.startswith("--")
    ]
    at = rng.choice(places)
    args[at + 1] = name = (
        _slip(rng, args[at + 1].partition(".")[0]) + "." + args[at + 1].partition(".")[2]
    )
    if name in start.files:
        return None
    made = _description(start, text)(
        "missing file",
        " ".join(args[at : at + 2]),
        value=re.escape(name),
        remedy="(?i)check|path|train|quantize",
    )
    return replace(made, args=tuple(args))


def option_with_slip(rng: Random, start: Start, text: str) -> Mistake | None:
    """An option with a slip."""
    options = ("--softmax", "--overwrite", "--timer", "--compact-data", "--verbose", "--fifo",
               "--board-name", "--mexpress", "--display-checkpoint", "--embedded-code")  # fmt: skip
    option = rng.choice(options)
    wrong = "--" + _slip(rng, option[2:])
    if wrong in options or option.startswith(wrong) or wrong == option:
        return None
    made = _description(start, text)(
        "option with a slip", wrong, value=re.escape(wrong), remedy=option
    )
    return replace(made, args=(*start.args, wrong))


def option_value(rng: Random, start: Start, text: str) -> Mistake | None:
    """A value that an option does not take."""
    option, value, remedy = rng.choice((
        ("--device", "MAX78001", "MAX78000"), ("--timer", "x", "(?i)whole number|int|0"),
        ("--max-checklines", "many", "(?i)whole number|int"), ("--timer", "99", "[0-9]"),
        ("--start-layer", "-5", "[0-9]"), ("--input-split", "0", "[0-9]"),
        ("--weight-start", "-1", "767|4095"),
    ))  # fmt: skip
    args = list(start.args)
    if option == "--device":
        args[args.index(option) + 1] = value
    else:
        args += [option, value]
    made = _description(start, text)(
        "value of an option", f"{option} {value}", key=option, value=value, remedy=remedy
    )
    return replace(made, args=tuple(args))


def wrong_checkpoint(rng: Random, start: Start, text: str) -> Mistake | None:
    """The checkpoint of another network, or one that is not quantized."""
    if CHECKPOINT not in start.files or "trained" not in start.name:
        return None
    other = rng.choice((
        "digits-ai85digitsnet-qat8-q", "mnist-ai85net5-qat8-q", "digits-ai85digitsnet-qat8",
        "mnist-ai85net5-qat8", "mnist-nas-qat8-q",
    ))  # fmt: skip
    data = (ROOT / "trained" / f"{other}.pth.tar").read_bytes()
    if data == start.files[CHECKPOINT]:
        return None
    made = _description(start, text)(
        "wrong checkpoint",
        other,
        value="net.pth.tar|weights|checkpoint",
        remedy="quantize.py|arch|another network|checkpoint",
    )
    return replace(made, files={**made.files, CHECKPOINT: data})


def _policy(reader: str, text: str, kind: str, what: str, **named: object) -> Mistake:
    return Mistake(
        f"policy: {kind}", f"{reader}: {what}", (), {POLICY: text.encode()}, reader=reader,
        **named,  # type: ignore[arg-type]
    )  # fmt: skip


def mistake_in_policy(rng: Random, start: Start, text: str) -> Mistake | None:
    """Any of these mistakes in a policy or schedule of policies/."""
    reader = rng.choice(tuple(_POLICIES))
    text = rng.choice(sorted((ROOT / "policies").glob(_POLICIES[reader]))).read_text()
    lines = [x for x in lines_of(re.sub(r"[ ]+#.*", "", text)) if x.key not in _ANY_VALUE]
    line = rng.choice(lines)
    key, value = line.key, line.value
    at: tuple[int, ...] = (line.number,)
    match rng.randrange(6):
        case 0:
            key = _slip(rng, line.key)
            if key == line.key or len(key) < 4:
                return None
            changed = with_line(text, line.number, f"{line.lead}{key}: {value}")
            return _policy(
                reader, changed, "slip in a key", key, lines=at, key=key, remedy=line.key
            )
        case 1:
            value = rng.choice(("-3", "[-1]", "often", "{a: 1}", "null"))
            if value == line.value or key == "samples":
                return None
            changed = with_line(text, line.number, f"{line.lead}{key}: {value}")
            shown = "'a': 1" if value[0] == "{" else re.escape(value)
            remedy = "must be|Available|Defined|must hold"
            if reader == "schedule" and key in ("class", "instance_name"):
                key = ""
            return _policy(
                reader, changed, "wrong value", f"{key}: {value}", lines=at, key=key, value=shown,
                remedy=remedy,
            )  # fmt: skip
        case 2:
            changed = with_line(text, line.number, f"\t{key}: {value}")
            return _policy(
                reader, changed, "tab", key, lines=at, value="tab|\\\\t", remedy="spaces"
            )
        case 3:
            again = f"{line.lead.replace('- ', '  ')}{key}: {value}"
            changed = with_line(text, line.number, text.split("\n")[line.number - 1], again)
            return _policy(
                reader, changed, "key twice", key, lines=(line.number + 1,), key=key,
                value=f"twice, first in line {line.number}", remedy="Remove one",
            )  # fmt: skip
        case 4 if line.lead and "- " not in line.lead:
            changed = with_line(text, line.number, f"{line.lead} {key}: {value}")
            around = (line.number - 1, line.number, line.number + 1)
            if "  " + line.lead.strip() in text.split("\n")[line.number - 2]:
                return None
            return _policy(
                reader,
                changed,
                "indentation",
                key,
                lines=around,
                remedy="indentation|must hold|Did you mean|must be",
            )
        case 5 if key in _NEEDED and "overrides" not in text:
            changed = with_line(text, line.number)
            near = tuple(range(1, line.number + 2))
            return _policy(
                reader,
                changed,
                "missing key",
                key,
                lines=near,
                key=key,
                value="missing|must hold",
                remedy="must|Defined",
            )
    return None


POLICY = "policy.yaml"
_POLICIES = {
    "qat": "qat_policy*.yaml",
    "schedule": "schedule*.yaml",
    "search": "nas_policy*.yaml",
    "objects": "obj_detection*.yaml",
}
_NEEDED = (
    "start_epoch", "weight_bits", "starting_epoch", "ending_epoch", "frequency", "class",
    "num_epochs", "teacher_model", "alpha", "min_score", "top_k", "milestones",
)  # fmt: skip
_ANY_VALUE = ("gamma", "eta_min", "samples", "shift_quantile", "lr")
"""Keys of which few values are wrong."""


Maker = Callable[[Random, Start, str], Mistake | None]
OF_TRAINED = (wrong_checkpoint, layer_left_out)
"""Mistakes that show with the weights of a trained network."""
KEEPING_LINES = (slip_in_key, value_outside, wrong_type, wrong_mask, wrong_reference)
"""Mistakes that leave every other line where it is, so that a file can have several."""


def files_with_several(
    counts: Sequence[int],
    seed: int,
    makers: Sequence[Maker] = KEEPING_LINES,
    *,
    apart: bool = False,
) -> Iterator[list[Mistake]]:
    """Yield files with as many mistakes, all in the same text; perhaps in layers `apart`."""
    rng = Random(seed)
    starts = [x for x in own_starts() if b"{" not in x.files[DESCRIPTION]]
    for each in counts:
        start = rng.choice(starts)
        text, found = start.files[DESCRIPTION].decode(), list[Mistake]()
        while len(found) < each:
            mistake = rng.choice(makers)(rng, start, text)
            if mistake is None or any(set(mistake.lines) & set(x.lines) for x in found):
                continue
            if any(_takes_away(mistake, x) or _takes_away(mistake, mistake) for x in found):
                continue
            layers = [_layer_of(text, x.lines[0]) for x in (*found, mistake)]
            if apart and len(set(layers)) < len(layers):
                if len(set(layers)) == len(_layers(text)):  # as many as there are
                    break
                continue
            text = mistake.files[DESCRIPTION].decode()
            found.append(mistake)
        yield [replace(x, files={**x.files, DESCRIPTION: text.encode()}) for x in found]


def _takes_away(mistake: Mistake, other: Mistake) -> bool:
    """Whether a text has no name any more that the reference of another mistake means."""
    text = mistake.files[DESCRIPTION].decode()
    return other.kind == "wrong reference" and not re.search(other.remedy, text)


def _read_policy(reader: str, path: str) -> None:
    """Read a policy as train.py does."""
    from ai8xtools.training.losses.multibox import read_parameters  # here: PyTorch takes its time
    from ai8xtools.training.policies.qat import read_policy
    from ai8xtools.training.policies.schedule import read_schedule
    from ai8xtools.training.search.policy import read_search_policy

    readers: dict[str, Callable[[str], object]] = {
        "qat": read_policy, "schedule": read_schedule, "search": read_search_policy,
        "objects": read_parameters,
    }  # fmt: skip
    readers[reader](path)


MAKERS = (
    slip_in_key, value_outside, wrong_type, missing_key, wrong_indentation, key_twice, tab,
    layer_left_out, layer_twice, wrong_mask, wrong_reference, missing_file, option_with_slip,
    option_value, wrong_checkpoint, mistake_in_policy, mistake_in_policy, mistake_in_policy,
)  # fmt: skip


def mistakes(count: int, seed: int) -> Iterator[Mistake]:
    """Yield so many mistakes, of every kind in turn."""
    rng = Random(seed)
    starts = [x for x in own_starts() if b"{" not in x.files[DESCRIPTION]]  # a line for each key
    trained = [start for start in starts if "trained" in start.name]
    made = number = 0
    while made < count:
        number += 1
        maker = MAKERS[number % len(MAKERS)]
        start = rng.choice(
            trained if rng.randrange(3) == 0 or maker is wrong_checkpoint else starts
        )
        text = start.files[DESCRIPTION].decode()
        mistake = maker(rng, start, text)
        if mistake is not None:
            made += 1
            yield mistake


def said(mistake: Mistake, folder: Path) -> list[Diagnostic]:
    """Return what the loader says about a mistake."""
    for name, content in mistake.files.items():
        (folder / name).write_bytes(content)
    if mistake.reader != "description":
        try:
            _read_policy(mistake.reader, str(folder / POLICY))
        except Exception as exc:
            return list(diagnostics_of(exc))
        return []
    before = Path.cwd()
    os.chdir(folder)
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            create_project(
                parse(
                    [*mistake.args, "--test-dir", "out", "--prefix", "p", "--no-log", "--overwrite"]
                )
            )
    except SystemExit:
        return [Diagnostic("usage", errors.getvalue())]
    except (KeyboardInterrupt, Exception) as exc:
        return list(diagnostics_of(exc))
    finally:
        os.chdir(before)
    return []


def judged(mistake: Mistake, found: list[Diagnostic]) -> dict[str, bool]:
    """Return whether line, key, value and remedy are named, by the message that names most."""
    best: dict[str, bool] = dict.fromkeys(("line", "key", "value", "remedy"), False)
    for d in found:
        text = f"{d.place} {d.message} {d.remedy}"
        here = {
            "line": not mistake.lines or (d.place is not None and d.place.line in mistake.lines),
            "key": mistake.key in text,
            "value": re.search(mistake.value, text, re.DOTALL) is not None,
            "remedy": re.search(mistake.remedy, text, re.DOTALL) is not None,
        }
        best = max(best, here, key=lambda one: sum(one.values()))
    return best


def main() -> int:
    """Print the table of 200 mistakes, and 60 in 20 files; 1 if the goal is missed."""
    return measured(
        lambda options: mistakes(options.count, options.seed),
        lambda options: files_with_several((3,) * options.files, options.seed),
        said,
    )


def measured(
    single: Callable[[argparse.Namespace], Iterator[Mistake]],
    together: Callable[[argparse.Namespace], Iterator[list[Mistake]]],
    say: Callable[[Mistake, Path], list[Diagnostic]],
) -> int:
    """Print the table of what is said of mistakes; 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=20, help="files with several mistakes")
    parser.add_argument("--show", action="store_true", help="print the messages of what is missed")
    options = parser.parse_args()
    counts: dict[str, list[dict[str, bool]]] = {}
    with tempfile.TemporaryDirectory() as name:
        for several in ([mistake] for mistake in single(options)):
            _judge(several, say(several[0], Path(name)), several[0].kind, counts, options.show)
        for several in together(options):
            _judge(several, say(several[0], Path(name)), "several in a file", counts, options.show)
    total = [result for results in counts.values() for result in results]
    print(f"{'mistake':20} {'cases':>5} {'line':>6} {'key':>6} {'value':>6} {'remedy':>6}")
    for kind, results in [*counts.items(), ("all", total)]:
        shares = [sum(r[what] for r in results) / len(results) for what in total[0]]
        print(f"{kind:20} {len(results):5} " + " ".join(f"{share:6.1%}" for share in shares))
    return int(any(sum(r[what] for r in total) < GOAL * len(total) for what in total[0]))


def _judge(
    several: list[Mistake],
    found: list[Diagnostic],
    kind: str,
    counts: dict[str, list[dict[str, bool]]],
    show: bool,
) -> None:
    """Add to the counts what is named of the mistakes of a file; perhaps show what is not."""
    for mistake in several:
        result = judged(mistake, found)
        counts.setdefault(kind, []).append(result)
        if show and not all(result.values()):
            missed = [what for what, right in result.items() if not right]
            print(f"### {kind} / {mistake.kind} / {mistake.what}: no {missed}; {mistake.lines}")
            print([x.what for x in several], *(f"    {d}" for d in found[:6]), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
