"""What the program around the network does otherwise: its calls, clock, waiting and files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ai8xtools.emulator.differences.difference import Difference, Subject
from ai8xtools.emulator.differences.side import Side
from ai8xtools.emulator.project.tree import MAIN, read_tree
from ai8xtools.reading import source_text
from ai8xtools.values import frozen

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*|\"(?:[^\"\\\n]|\\.)*+\"", re.DOTALL)
_CALL = re.compile(r"(?<!\bint )(?<!\bvoid )\b(\w+)\s*+\(")
_ARGUMENTS = re.compile(r"\s*+\(([^();]*+)\)")
_FUNCTIONS = ("enable", "init", "load", "load_weights", "load_bias", "configure", "start",
              "continue", "stop", "unload", "disable", "boost_enable", "boost_disable")  # fmt: skip
_TIMER = re.compile(r"#\s*+define\s++CNN_INFERENCE_TIMER\b")  # in a header
_SWITCH = re.compile(r"\bpclkdiv\b")  # in main()
_WAYS = {
    "sleeps": re.compile(r"\bMXC_LP_EnterSleepMode\b|\bwfi\b|\b__WFI\b"),
    "sleeps deeply": re.compile(r"\bMXC_LP_Enter(?:DeepSleep|Standby|LowPower|Upm)\w*"),
    "measures its time": re.compile(r"\bMXC_TMR_SW_Start\s*+\((?!\s*+CNN_INFERENCE_TIMER)"),
    "computes a softmax": re.compile(r"\b(?:arm_)?softmax\w*\s*+\("),
}


@frozen
class _Program:
    """What a program does: functions of the network that main() calls, by their first call, all
    that are called, clock, what else it has.
    """

    calls: tuple[str, ...]
    everywhere: frozenset[str]
    clock: str
    ways: frozenset[str]
    files: frozenset[str]


def behaviour_differences(theirs: Side, ours: Side) -> Iterator[Difference]:
    """Yield what the texts of the programs show; nothing of a project without main()."""
    one, two = _program(theirs), _program(ours)
    for name in sorted(one.files ^ two.files):
        yield Difference(
            Subject.FILES, f"{name} is {'there' if name in one.files else 'here'} only"
        )
    if not one.calls or not two.calls:
        where = "there" if not one.calls else "here"
        yield Difference(
            Subject.FILES, f"no main() is {where}; what the program does is not compared"
        )
        return
    if one.clock != two.clock:
        clocks = f"cnn_enable({one.clock}) there, cnn_enable({two.clock}) here"
        yield Difference(Subject.BEHAVIOUR, f"clock of the accelerator: {clocks}")
    if "cnn_load" in {*one.calls, *two.calls}:
        text = "one function loads network and input (SDK of 2020): the calls are not compared"
        yield Difference(Subject.FILES, text)
    else:
        yield from _calls(one, two)
    for way in sorted(one.ways ^ two.ways):
        where = "there" if way in one.ways else "here"
        yield Difference(Subject.BEHAVIOUR, f"the program {way} {where} only")


def _calls(one: _Program, two: _Program) -> Iterator[Difference]:
    """Compare which functions of the network are called, and in which order."""
    for name in sorted(one.everywhere ^ two.everywhere):
        where = "there" if name in one.everywhere else "here"
        yield Difference(Subject.BEHAVIOUR, f"the program calls {name}() {where} only")
    common = {*one.calls} & {*two.calls}
    orders = [[call for call in program.calls if call in common] for program in (one, two)]
    if orders[0] != orders[1]:
        shown = (", ".join(order) for order in orders)
        text = f"main() calls {next(shown)} in this order there, {next(shown)} here"
        yield Difference(Subject.BEHAVIOUR, text)


def _program(side: Side) -> _Program:
    tree = read_tree(side.folder)
    headers = [path for folder in tree.include for path in sorted(folder.glob("*.h"))]
    calls: list[tuple[str, str]] = []
    everywhere: set[str] = set()
    ways: set[str] = set()
    for text in map(_text, (*tree.sources, *tree.wrappers)):
        main = MAIN.search(text)
        if main is not None:
            calls += _called(side, text, main.end())
            everywhere |= {name for name, _ in _called(side, text)}
            ways |= {name for name, way in _WAYS.items() if way.search(text)}
            if _SWITCH.search(text, main.end()):
                ways.add("switches the clock of the accelerator for an inference")
    if any(_TIMER.search(_text(path)) for path in headers):
        ways.add("measures its time")
    clocks = (arguments for name, arguments in calls if name == "cnn_enable")
    files = frozenset(path.name for path in (*tree.sources, *tree.wrappers, *headers))
    names = tuple(dict.fromkeys(name for name, _ in calls))
    return _Program(names, frozenset(everywhere), next(clocks, ""), frozenset(ways), files)


def _called(side: Side, text: str, start: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the calls of the network's functions with their arguments."""
    prefix = side.network.sources.prefix
    names = {f"{prefix}_{name}": f"cnn_{name}" for name in _FUNCTIONS}
    names |= {"load_input": "load_input", "check_output": "check_output"}
    for call in _CALL.finditer(text, start):
        if call[1] in names:
            arguments = _ARGUMENTS.match(text, call.end(1))
            yield names[call[1]], " ".join(arguments[1].split()) if arguments else ""


def _text(path: Path) -> str:
    return _COMMENT.sub(" ", source_text(path))
