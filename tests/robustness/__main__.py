"""`make fuzz`: run the network loader on many damaged inputs and tell how it ended."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tests.robustness.cases import case_of, usable
from tests.robustness.runner import run_case
from tests.robustness.starts import TARGETS, Start, Target, own_starts, starts_of_suite

_SHARE = 10
"""Of the other inputs, one case is run for so many of the description."""


@dataclass(frozen=True, slots=True)
class Result:
    """What the table needs of a case."""

    name: str
    target: Target
    number: int
    mutation: str
    accepted: bool
    placed: bool
    failure: str | None
    seconds: float
    peak_bytes: int


_starts: list[Start] = []
"""In every worker, which inherits them: they are too large to be sent with each case."""


def _remember(starts: list[Start]) -> None:
    _starts[:] = starts


def result_of(seed: int, show: bool, keep: Path | None, which: tuple[Target, int]) -> Result:
    """Run one case; `show` prints what the loader said, `keep` is where its files stay."""
    case = case_of(_starts, which[0], seed, which[1])
    outcome = run_case(case, keep)
    failure = outcome.failure()
    if show:
        print(f"{case}: exit status {outcome.status}\n{outcome.output}{outcome.errors}")
    refused = failure is None and not outcome.accepted
    return Result(
        str(case), case.target, case.number, case.mutation, outcome.accepted,
        refused and outcome.placed, failure, outcome.seconds, outcome.peak_bytes,
    )  # fmt: skip


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.robustness", description=__doc__)
    option = parser.add_argument
    option("--count", type=int, default=2000, metavar="N",
           help="damaged descriptions (default: %(default)s); a tenth as many of every other kind "
                "of input")  # fmt: skip
    option("--seed", type=int, default=1, metavar="S", help="which cases (default: %(default)s)")
    option("--targets", nargs="+", choices=TARGETS, default=TARGETS, help="kinds of input")
    option("--cases", type=Path, metavar="DIR",
           help="start from a folder of known answers, not from the own networks")  # fmt: skip
    option("--only", type=int, metavar="N", help="run one case and print what the loader says")
    option("--keep", type=Path, metavar="DIR", help="with --only: leave its files there")
    option("--jobs", type=int, default=1, metavar="N", help="cases at a time")
    return parser.parse_args()


def chosen(args: argparse.Namespace, starts: list[Start]) -> Iterator[tuple[Target, int]]:
    """Yield the cases to run."""
    for target in args.targets:
        if not usable(starts, target):
            continue
        if args.only is not None:
            yield target, args.only
            continue
        count = args.count if target == "description" else -(-args.count // _SHARE)
        yield from ((target, number) for number in range(count))


def run_all(args: argparse.Namespace, starts: list[Start]) -> Iterator[Result]:
    """Run the cases, telling of failures as they come."""
    work = partial(result_of, args.seed, args.only is not None, args.keep)
    forked = get_context("fork")
    with ProcessPoolExecutor(args.jobs, forked, _remember, (starts,)) as pool:
        for count, result in enumerate(pool.map(work, chosen(args, starts), chunksize=8), 1):
            if sys.stderr.isatty():
                print(f"\r{count} cases", end="", file=sys.stderr)
            if result.failure:
                print(f"FAILED {result.name}: {result.failure}", flush=True)
            yield result


def table(results: Iterable[Result]) -> Iterator[str]:
    """Yield the lines of a summary, per kind of mutation and in total."""
    rows: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        rows.setdefault((result.target, result.mutation), []).append(result)
    yield (
        f"{'input':12} {'mutation':22} {'cases':>6} {'accepted':>8} {'refused':>8} "
        f"{'with line':>9} {'failed':>6} {'slowest':>8} {'peak':>9}"
    )
    for target in dict.fromkeys(key[0] for key in rows):
        ordered = sorted(key for key in rows if key[0] == target)
        for key in ordered:
            yield _row(*key, rows[key])
        yield _row(target, "all", [r for key in ordered for r in rows[key]])


def _row(target: str, mutation: str, results: list[Result]) -> str:
    failed = sum(r.failure is not None for r in results)
    accepted = sum(r.accepted and r.failure is None for r in results)
    return (
        f"{target:12} {mutation:22} {len(results):6} {accepted:8} "
        f"{len(results) - accepted - failed:8} {sum(r.placed for r in results):9} {failed:6} "
        f"{max(r.seconds for r in results):6.1f} s {max(r.peak_bytes for r in results) >> 20:5} MiB"
    )


def main() -> int:
    """Run the cases and print the table; 1 if one failed."""
    args = arguments()
    starts = list(starts_of_suite(args.cases) if args.cases else own_starts())
    results = list(run_all(args, starts))
    print("\n".join(table(results)))
    failed = [result for result in results if result.failure]
    print(f"{len(results)} cases, {len(failed)} failed")
    if failed:
        more = f" --cases {args.cases}" if args.cases else ""
        print(
            "Run one again: python -m tests.robustness "
            f"--seed {args.seed}{more} --targets {failed[0].target} --only {failed[0].number}"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
