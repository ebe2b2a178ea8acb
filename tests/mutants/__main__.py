"""Plant defects and run the nearest tests; see the docstring of the package."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import tests.mutants as about
from tests.mutants import drawing, measuring, nearest, running
from tests.mutants.mutant import ROOMS, Mutant, read, write
from tests.mutants.uncovered import uncovered

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path("tests", "mutants")
BOUND = 0.92
_MEASURING_SECONDS = 600.0


@dataclass
class Verdict:
    """What became of a mutant: noticed, time-out, died, memory, survived or equivalent."""

    mutant: Mutant
    fate: str
    told: str
    test: str = ""
    text: str = ""
    ran: int = 0
    seconds: float = 0.0

    @property
    def noticed(self) -> bool:
        return self.fate not in ("survived", "equivalent")


@dataclass
class Campaign:
    """Mutants on their way through the workers."""

    workers: running.Workers
    measured: dict[str, nearest.Measured]
    tree: str
    seconds: float
    tell: Callable[[Verdict], None]
    failing: set[str]
    verdicts: list[Verdict] = field(default_factory=list)
    proven: set[str] = field(default_factory=set)
    tries: Counter[Mutant] = field(default_factory=Counter)

    def plan(self, mutant: Mutant) -> None:
        """Let a mutant meet its tests."""
        parts = nearest.batches(ROOT, mutant, self.measured, self.failing, self.seconds)
        seconds = {t: s for name, _ in parts for t, s in self.measured[name].seconds.items()}
        text = (ROOT / mutant.file).read_text()
        self.tries[mutant] += 1
        stamp = 1e9 + 2 * self.tries.total()

        def prepare(tree: Path) -> None:
            _write(tree / mutant.file, mutant.applied(text), stamp)

        self.workers.waiting.append(running.Task(
            lambda: running.run_tests(parts, seconds, self.seconds),
            lambda result: self._judge(mutant, Verdict(mutant, told=mutant.told(text), **result)),
            prepare, lambda tree: _write(tree / mutant.file, text, stamp + 1), self.seconds,
        ))  # fmt: skip

    def _judge(self, mutant: Mutant, verdict: Verdict) -> None:
        """Believe a failing test if it was seen to pass here without a mutant, or passes now."""
        test, name = verdict.test, verdict.test.partition("::")[0]
        known = name in self.measured and self.measured[name].tree == self.tree
        if (
            not verdict.noticed
            or not test
            or known
            or test in self.proven
            or self.tries[mutant] > 20
        ):
            self.verdicts.append(verdict)
            self.tell(verdict)
            return
        chosen = [test] if "::" in test else [*self.measured[name].seconds][:1]
        seconds = self.measured[name].seconds

        def proven(result: dict[str, Any]) -> None:
            if result["fate"] == "survived" and result["ran"]:
                self.proven.add(test)
                self._judge(mutant, verdict)
            else:
                self.failing |= {test} if "::" in test else {*seconds}
                self.plan(mutant)

        self.workers.waiting.insert(0, running.Task(
            lambda: running.run_tests([(name, chosen)], seconds, self.seconds), proven
        ))  # fmt: skip


def _write(path: Path, text: str, stamp: float) -> None:
    """Write a file with a time of its own: what was compiled from another text is out of date."""
    path.write_text(text)
    os.utime(path, (stamp, stamp))


def _is_known(one: nearest.Measured | None, path: Path) -> bool:
    return one is not None and one.key == nearest.file_key(path)


def measure(
    workers: running.Workers, names: Sequence[str], file: Path, tree: str, which: str
) -> dict[str, nearest.Measured]:
    """Return what the tests of files execute; measure those of which nothing is known, save it."""
    measured = nearest.load(file)

    def task(name: str) -> running.Task:
        def done(result: dict[str, Any]) -> None:
            if "fate" in result:
                print(f"{name}: {result['fate']} at {result['test']}: left out", file=sys.stderr)
                print(result["text"], file=sys.stderr)
                return
            texts = {
                one: nearest.noted((ROOT / one).read_text())
                for one in result["lines"] if one.endswith(".py")
            }  # fmt: skip
            measured[name] = nearest.Measured(**result, tree=tree, texts=texts)
            total = sum(result["seconds"].values())
            print(f"{name}: {len(result['seconds'])} tests, {total:.0f} s", file=sys.stderr)
            nearest.save(file, measured)

        return running.Task(lambda: measuring.measure(name), done, seconds=_MEASURING_SECONDS)

    wanted = [
        name for name in names
        if which == "all" or (which == "new" and not _is_known(measured.get(name), ROOT / name))
    ]  # fmt: skip
    workers.waiting += [task(name) for name in wanted]
    workers.run()
    return {name: one for name, one in measured.items() if name in names}


def equivalents() -> dict[tuple[str, str, str], str]:
    """Return the mutants that are known to change nothing, with reasons."""
    found = tomllib.loads((ROOT / HERE / "equivalent.toml").read_text()).get("defect", [])
    return {Mutant(one["file"], one["old"], one["new"]).key(): one["why"] for one in found}


def table(verdicts: Sequence[Verdict]) -> str:
    """Return numbers by room."""
    rows = [("room", "planted", "noticed", "time-out", "equivalent", "survived")]
    rooms = [*ROOMS, *sorted({one.mutant.room for one in verdicts} - {*ROOMS})]
    for room in [*rooms, "all"]:
        fates = Counter(one.fate for one in verdicts if room in (one.mutant.room, "all"))
        if fates:
            noticed = sum(fates[fate] for fate in ("noticed", "died", "memory"))
            rows.append((room, *(str(n) for n in (
                fates.total(), noticed, fates["time-out"], fates["equivalent"], fates["survived"]
            ))))  # fmt: skip
    return "\n".join(f"{row[0]:22}" + "".join(f"{cell:>12}" for cell in row[1:]) for row in rows)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=about.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--rooms", nargs="+", default=[*ROOMS], metavar="ROOM", help="default: all")
    add("--count", type=int, default=400, help="mutants drawn (default: 400)")
    add("--seed", type=int, default=1, help="default: 1")
    add("--list", type=Path, metavar="FILE", help="run the defects of a list, draw none")
    add("--draw", type=Path, metavar="FILE", help="write the mutants as a list, run nothing")
    add("--jobs", type=int, default=os.cpu_count(), help="processes (default: all cores)")
    add(
        "--seconds", type=float, default=60.0, help="of the processor for each mutant (default: 60)"
    )
    add("--map", type=Path, default=ROOT / "build" / "mutants" / "map.gz", metavar="FILE")
    add("--measure", choices=("new", "all", "none"), default="new",
        help="tests to measure: those of new and changed files (default), all, none")  # fmt: skip
    add("--only-measure", action="store_true", help="run no mutants")
    add("--uncovered", action="store_true", help="list statements that no test executes")
    add("--json", type=Path, metavar="FILE", help="write all results, as they come")
    add("--survivors", type=Path, metavar="FILE", help="append survivors, as they come")
    args = parser.parse_args(given)
    for one in args.rooms:
        if not rooms_of([one]):
            parser.error(f"there is no room {one}; rooms are {', '.join(ROOMS)}")
    return args


def rooms_of(named: Sequence[str]) -> list[str]:
    """Return the rooms that are named, or in folders that are, with the package or without."""
    starts = tuple(f"{start}{one}/" for one in named for start in ("", "ai8xtools/"))
    return [room for room in ROOMS if f"{room}/".startswith(starts)]


def main() -> int:
    """Run a campaign; return 1 if less than 92 % are noticed."""
    args = arguments()
    rooms = rooms_of(args.rooms)
    mutants = read(args.list) if args.list else drawing.draw(ROOT, rooms, args.count, args.seed)
    if args.draw:
        write(args.draw, mutants)
        return 0
    for one in mutants:
        one.applied((ROOT / one.file).read_text())
    known = equivalents()
    begin = time.monotonic()

    def tell(verdict: Verdict) -> None:
        told = f"{verdict.fate}: {verdict.told}"
        by = f"   [{verdict.test}]" if verdict.noticed else f"   [{verdict.ran} tests ran]"
        print(told + by, flush=True)
        if args.json:
            args.json.write_text(json.dumps([asdict(one) for one in campaign.verdicts], indent=1))
        if args.survivors and verdict.fate == "survived":
            with args.survivors.open("a") as file:
                file.write(f"{verdict.mutant.room}: {verdict.told}{by}\n")

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    running.preload()
    with running.workers(ROOT, args.jobs) as workers:
        tree = nearest.tree_key(ROOT)
        names = nearest.test_files(ROOT, [one.room for one in mutants])
        measured = measure(workers, names, args.map, tree, args.measure)
        failing = {test for one in measured.values() for test in one.failing}
        print(*(f"fails without a mutant: {test}" for test in sorted(failing)), sep="\n")
        if args.uncovered:
            print(*uncovered(ROOT, rooms, measured), sep="\n")
        if args.only_measure or args.uncovered:
            return 0
        campaign = Campaign(workers, measured, tree, args.seconds, tell, failing)
        for one in mutants:
            if one.key() in known:
                told = f"{one.told((ROOT / one.file).read_text())}   [{known[one.key()]}]"
                campaign.verdicts.append(Verdict(one, "equivalent", told))
            else:
                campaign.plan(one)
        workers.run()
    verdicts = campaign.verdicts
    print(
        *(f"fails without a mutant: {test}" for test in sorted(campaign.failing - failing)),
        sep="\n",
    )
    print(table(verdicts))
    survived = [one for one in verdicts if one.fate == "survived"]
    print(*(f"survived: {one.told}" for one in survived), sep="\n")
    share = 1 - len(survived) / max(len(verdicts), 1)
    print(f"{share:.1%} noticed or equivalent, in {time.monotonic() - begin:.0f} s")
    return int(share < BOUND)


if __name__ == "__main__":
    sys.exit(main())
