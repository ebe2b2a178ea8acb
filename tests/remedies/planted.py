"""Broken projects, drawn as people break them: descriptions, options, files, models, C.

Mistakes in descriptions and options are those of `make mistakes`. Nothing is filtered but changes
that leave everything as it was: a wrong number may well be valid, and then no message can know it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import ROOT
from tests.robustness import mistakes as first
from tests.robustness import other_mistakes as second
from tests.robustness.mistakes import lines_of, with_line
from tests.robustness.starts import CHECKPOINT, DESCRIPTION, Start, own_starts

Random = random.Random
PROJECT = "p"
_LOADER = str(ROOT / "ai8xize.py")
_WRITTEN = ("--test-dir", ".", "--prefix", PROJECT, "--no-log", "--overwrite")
TRAINED = {"digits": "ai85digitsnet-qat8", "mnist": "ai85net5-qat8"}


@dataclass(frozen=True)
class Broken:
    """A project with one mistake: its files, the command that shows it, and the sound command.

    `generated` says that the files are those of a project, which the emulator runs.
    """

    group: str
    kind: str
    what: str
    words: tuple[str, ...]
    sound: tuple[str, ...]
    files: dict[str, bytes] = field(repr=False)
    sound_files: dict[str, bytes] = field(repr=False)
    edit_c: Callable[[Path], str | None] | None = None


Maker = Callable[[Random], Broken | None]


def _starts(*, trained: bool = False) -> list[Start]:
    starts = [x for x in own_starts() if b"{" not in x.files[DESCRIPTION]]
    return [x for x in starts if "trained" in x.name] if trained else starts


def _loading(start: Start, args: tuple[str, ...] | None = None) -> tuple[str, ...]:
    return (_LOADER, *(start.args if args is None else args), *_WRITTEN)


_OF_DESCRIPTIONS: tuple[first.Maker, ...] = (
    first.slip_in_key, first.value_outside, first.wrong_type, first.missing_key,
    first.wrong_indentation, first.key_twice, first.tab, first.layer_left_out, first.layer_twice,
    first.wrong_mask, first.wrong_reference, second.value_spelled_wrong, second.with_unit,
    second.bad_hexadecimal, second.unknown_anchor, second.punctuation, second.other_style,
    second.dash_forgotten,
)  # fmt: skip
_OF_OPTIONS: tuple[first.Maker, ...] = (
    first.missing_file, first.option_with_slip, first.option_value, second.loading_option,
)  # fmt: skip


def _of_mistakes(rng: Random, group: str, makers: tuple[first.Maker, ...]) -> Broken | None:
    maker = rng.choice(makers)
    trained = maker is first.layer_left_out or rng.randrange(3) == 0
    start = rng.choice(_starts(trained=trained))
    mistake = maker(rng, start, start.files[DESCRIPTION].decode())
    if mistake is None:
        return None
    files = {**start.files, **mistake.files}
    return Broken(group, mistake.kind, mistake.what, _loading(start, mistake.args),
                  _loading(start), files, dict(start.files))  # fmt: skip


_NUMBERS = {
    "kernel_size": ("1x1", "3x3", "1", "5", "9"), "pad": ("0", "1", "2"),
    "max_pool": ("2", "3", "4"), "avg_pool": ("2", "3", "4", "8"), "pool_stride": ("1", "2", "4"),
    "operands": ("2", "3"), "output_width": ("8", "32"), "quantization": ("1", "2", "4", "8"),
    "out_offset": ("0x0000", "0x1000", "0x2000", "0x4000"), "in_offset": ("0x0000", "0x2000"),
    "stride": ("1", "2"), "in_sequences": ("0", "1", "-1"), "op": ("Conv2d", "Conv1d", "Linear"),
    "activate": ("ReLU", "Abs", "None"), "data_format": ("HWC", "CHW"),
}  # fmt: skip


def wrong_number(rng: Random) -> Broken | None:
    """A value that the key takes, but another one."""
    start = rng.choice(_starts(trained=rng.randrange(3) == 0))
    text = start.files[DESCRIPTION].decode()
    lines = [x for x in lines_of(text) if x.key in _NUMBERS]
    if not lines:
        return None
    line = rng.choice(lines)
    value = rng.choice(_NUMBERS[line.key])
    if value.lower() == line.value.lower():
        return None
    changed = with_line(text, line.number, f"{line.lead}{line.key}: {value}")
    return _described(start, changed, "another value", f"{line.key}: {line.value} -> {value}")


def swapped_values(rng: Random) -> Broken | None:
    """The values of a key stand in each other's layers."""
    start = rng.choice(_starts(trained=rng.randrange(3) == 0))
    text = start.files[DESCRIPTION].decode()
    lines = lines_of(text)
    one = rng.choice(lines)
    others = [x for x in lines if x.key == one.key and x.value != one.value]
    if not others:
        return None
    other = rng.choice(others)
    changed = with_line(text, one.number, f"{one.lead}{one.key}: {other.value}")
    changed = with_line(changed, other.number, f"{other.lead}{other.key}: {one.value}")
    return _described(start, changed, "values swapped", f"{one.key} {one.number} {other.number}")


def _described(start: Start, text: str, kind: str, what: str) -> Broken:
    files = {**start.files, DESCRIPTION: text.encode()}
    return Broken("description", kind, f"{start.name}: {what}", _loading(start), _loading(start),
                  files, dict(start.files))  # fmt: skip


def wrong_description(rng: Random) -> Broken | None:
    """One of the mistakes in a description."""
    choice = rng.randrange(len(_OF_DESCRIPTIONS) + 4)
    if choice < 2:
        return wrong_number(rng)
    return swapped_values(rng) if choice < 4 else _of_mistakes(rng, "description", _OF_DESCRIPTIONS)


def wrong_option(rng: Random) -> Broken | None:
    """One of the mistakes on a command line, or two values in each other's place."""
    if rng.randrange(5):
        return _of_mistakes(rng, "options", _OF_OPTIONS)
    start = rng.choice(_starts())
    words = list(start.args)
    at = rng.sample([i for i, word in enumerate(words) if not word.startswith("--")], 2)
    match rng.randrange(3):
        case 0:  # the values of two options in each other's place
            words[at[0]], words[at[1]] = words[at[1]], words[at[0]]
            kind = "values swapped"
        case 1:  # an option is missing
            del words[at[0] - 1 : at[0] + 1]
            kind = "option missing"
        case _:  # the other chip
            place = words.index("--device") + 1
            words[place] = {"MAX78000": "MAX78002", "MAX78002": "MAX78000"}[words[place]]
            kind = "other device"
    return Broken("options", kind, f"{start.name}: {words[at[0] - 1]}", _loading(start, (*words,)),
                  _loading(start), dict(start.files), dict(start.files))  # fmt: skip


def wrong_checkpoint(rng: Random) -> Broken | None:
    """Of the checkpoints in a folder the one of another network, or the one before quantize.py."""
    start = rng.choice(_starts(trained=True))
    own = TRAINED[start.name.partition(" ")[0]]
    names = {x.name: x for x in (ROOT / "trained").glob("*qat8*.pth.tar")}
    right = next(x for x in names if own in x and x.endswith("-q.pth.tar"))
    kept = dict(start.files)
    del kept[CHECKPOINT]
    chosen = [right, right.replace("-q.", "."), *rng.sample(sorted(names), 3)]
    kept |= {name: names[name].read_bytes() for name in chosen}
    wrong = rng.choice([name for name in chosen if name != right])
    if rng.randrange(4) == 0:
        wrong = first._slip(rng, right.partition(".")[0]) + ".pth.tar"
        if wrong in kept:
            return None
    args = tuple(wrong if word == CHECKPOINT else word for word in start.args)
    sound = tuple(right if word == CHECKPOINT else word for word in start.args)
    return Broken("checkpoint", "wrong file", f"{start.name}: {wrong}", _loading(start, args),
                  _loading(start, sound), kept, kept)  # fmt: skip


_MODELS = (("ai85digitsnet", "digits", "digits-ai85digitsnet-qat8-q"),
           ("ai85net5", "MNIST", "mnist-ai85net5-qat8-q"))  # fmt: skip


_OWN = "models/mynet.py"


def _model_file(rng: Random) -> Broken | None:
    """A model of a user's own with a slip in a name, without a sign, or with another number."""
    text = (ROOT / "models/ai85digitsnet.py").read_text().replace("ai85digitsnet", "mynet")
    code = text.index("def __init__")
    kind, pattern = rng.choice((
        ("slip in a name", r"[a-zA-Z_]\w{3,}"), ("sign left out", r"[:(),=\[\]]"),
        ("another number", r"\b\d+\b"),
    ))  # fmt: skip
    place = rng.choice([x for x in re.finditer(pattern, text) if x.start() > code])
    match kind:
        case "slip in a name":
            new = first._slip(rng, place[0])
        case "sign left out":
            new = ""
        case _:
            new = str(rng.choice((1, 2, 3, 5, 8, 16, 32, 48, 64)))
    changed = text[: place.start()] + new + text[place.end() :]
    line = text.count("\n", 0, place.start()) + 1
    return broken_model(kind, f"{_OWN}:{line}: {place[0]!r} -> {new!r}", text, changed)


def broken_model(kind: str, what: str, text: str, changed: str) -> Broken | None:
    """The model file `text` as `changed`, with the command that generates; None if they are one."""
    if changed == text:
        return None
    trained = _MODELS[0][2] + ".pth.tar"
    files = {trained: (ROOT / "trained" / trained).read_bytes(), _OWN: text.encode()}
    words = (_LOADER, "--device", "MAX78000", "--model", "mynet", "--dataset", "digits",
             "--checkpoint-file", trained, *_WRITTEN)  # fmt: skip
    return Broken("model", kind, what, words, words, {**files, _OWN: changed.encode()}, files)


def wrong_model(rng: Random) -> Broken | None:
    """A mistake in the file of a model, or in what the command line says about a model."""
    return _model_file(rng) if rng.randrange(2) else _model_named(rng)


def _model_named(rng: Random) -> Broken | None:
    """A slip in the name of a model or data set, another one, or another checkpoint."""
    model, data, trained = rng.choice(_MODELS)
    others = [x[2] for x in _MODELS]
    names = {f"{x}.pth.tar" for x in (*others, trained.removesuffix("-q"))}
    files = {x: (ROOT / "trained" / x).read_bytes() for x in names}
    values = {"--model": model, "--dataset": data, "--checkpoint-file": f"{trained}.pth.tar"}
    wrong = dict(values)
    option = rng.choice(tuple(values))
    match option, rng.randrange(2):
        case _, 0:
            stem, dot, end = values[option].partition(".")
            wrong[option] = first._slip(rng, stem) + dot + end
        case "--model", _:
            wrong[option] = rng.choice(("ai85cdnet", "ai85net5", "ai85digitsnet"))
        case "--dataset", _:
            wrong[option] = rng.choice(("MNIST", "digits", "CIFAR10"))
        case _:
            wrong[option] = rng.choice(sorted(names))
    if wrong == values:
        return None

    def words(chosen: dict[str, str]) -> tuple[str, ...]:
        pairs = [word for pair in chosen.items() for word in pair]
        return (_LOADER, "--device", "MAX78000", *pairs, *_WRITTEN)

    return Broken("model", option, f"{option} {wrong[option]}", words(wrong), words(values),
                  files, files)  # fmt: skip


_NUMBER = re.compile("0x[0-9a-f]{8}")


def _in_c(rng: Random, project: Path) -> str | None:
    """Change a project's C as people do who try things; return what was changed."""
    file = project / rng.choice(("cnn.c", "weights.h", "main.c", "sampledata.h", "cnn.c"))
    text = file.read_text()
    code = text.index("\n#")
    numbers = [x for x in _NUMBER.finditer(text) if x.start() > code]
    lines = text.split("\n")
    match rng.randrange(6):
        case 0 | 1 | 2 if numbers:  # a digit of a word
            number = rng.choice(numbers)
            digits = list(number[0])
            digits[rng.randrange(2, 10)] = rng.choice("0123456789abcdef")
            changed = text[: number.start()] + "".join(digits) + text[number.end() :]
        case 3:  # a statement is left out
            at = rng.choice([i for i, x in enumerate(lines) if re.match(r"    \S.*\);|    \*.*;", x)
                             or re.match(" +0x.*,", x)])  # fmt: skip
            changed = "\n".join(lines[:at] + lines[at + 1 :])
        case 4:  # a slip in a name
            word = rng.choice([x for x in re.finditer("[a-zA-Z_]{4,}", text) if x.start() > code])
            slip = first._slip(rng, word[0])
            changed = text[: word.start()] + slip + text[word.end() :]
        case _:  # a sign is left out
            sign = rng.choice([x for x in re.finditer("[;(){},]", text) if x.start() > code])
            changed = text[: sign.start()] + text[sign.end() :]
    if changed == text:
        return None
    file.write_text(changed)
    new = changed.split("\n")
    differing = next((n for n, x in enumerate(lines) if new[n : n + 1] != [x]), 0)
    return f"{file.name}:{differing + 1}"


def edited_c(rng: Random) -> Broken | None:
    """A line of the C of a generated project is another one."""
    start = rng.choice(_starts(trained=rng.randrange(2) == 0))
    seed = rng.randrange(1 << 30)
    words = (str(ROOT / "emulate.py"), PROJECT)
    return Broken("C", "C", start.name, words, _loading(start), dict(start.files),
                  dict(start.files), lambda project: _in_c(Random(seed), project))  # fmt: skip


MAKERS: tuple[Maker, ...] = (
    wrong_description, wrong_description, wrong_option, wrong_checkpoint, wrong_model, edited_c,
)  # fmt: skip


def broken_projects(count: int, seed: int, makers: tuple[Maker, ...] = MAKERS) -> Iterator[Broken]:
    """Yield so many projects, of every group in turn."""
    rng = Random(seed)
    made = number = 0
    while made < count:
        broken = makers[number % len(makers)](rng)
        if broken is not None:
            made += 1
            number += 1
            yield broken
