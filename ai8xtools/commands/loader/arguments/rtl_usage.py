"""What the options for RTL simulation tests imply, and which mean nothing beside others.

Source: docs/options.md, "ai8xize.py".
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ai8xtools.commands.loader.arguments.rtl_parser import CAMERA, SIMULATION_ONLY
from ai8xtools.diagnostics import Diagnostic
from ai8xtools.diagnostics.options import excludes, needs, no_effect
from ai8xtools.writing.application import ZEPHYR, asking

NONE = "none"
"""What --top-level and --autogen take for: no such thing."""


def is_rtl(args: argparse.Namespace) -> bool:
    """Whether a test for RTL simulation is wanted."""
    return bool(args.rtl or args.rtl_preload)


def is_block_level(args: argparse.Namespace) -> bool:
    """Whether the accelerator is simulated alone."""
    return is_rtl(args) and (args.top_level or "").lower() == NONE


def preloads_weights(args: argparse.Namespace) -> bool:
    """Whether the test bench loads the weights."""
    return is_rtl(args) and bool(args.rtl_preload_weights) and not kept_from_preloading(args)


def kept_from_preloading(args: argparse.Namespace) -> str | None:
    """Return the option for which the program loads the weights itself."""
    reasons = (
        ("--verify-kernels", args.verify_kernels),
        ("--verify-writes", args.verify_writes and not args.old_kernel_loader),
        ("--mexpress", args.express is True),
        ("--no-mexpress", args.express is False),
    )
    return next((option for option, applies in reasons if applies), None)


def rtl_usage(args: argparse.Namespace) -> list[Diagnostic]:
    """Return complaints about options that mean nothing here."""
    if not is_rtl(args):
        return [*_only_with(SIMULATION_ONLY, "--rtl", args)]
    complaints = [*_without_effect(args)]
    complaints += [
        excludes(option, "--rtl")
        for option, is_set in (("--verify", args.verify), ("--prove", args.prove))
        if is_set
    ]
    if args.input_csv is None:
        complaints += _only_with(CAMERA, "--input-csv", args)
    elif not (args.fast_fifo or args.fast_fifo_quad):
        complaints += _only_with(("--input-fifo",), "--fast-fifo", args)
    return complaints


def verify_usage(args: argparse.Namespace) -> Iterator[Diagnostic]:
    """Yield complaints about what cannot be done while an existing project is compared."""
    others = (
        ("--rtl", is_rtl(args)),
        ("--check-only", args.check_only),
        ("--verify", args.verify),
        ("--prove", args.prove),
        ("--report", args.report is not None),
    )
    for option, is_set in others:
        if is_set and args.verify_project is not None:
            yield excludes("--verify-project", option)
        if is_set and args.compare_project is not None:
            yield excludes("--compare-project", option)
    if args.verify_project is not None and args.compare_project is not None:
        yield excludes("--verify-project", "--compare-project")
    program = asking(args)
    if args.verify and program:
        yield excludes(program, "--verify")
    if args.board_name == ZEPHYR and args.application is None:
        yield needs(f"--board-name {ZEPHYR}", "--application")


def _only_with(
    names: tuple[str, ...], needed: str, args: argparse.Namespace
) -> Iterator[Diagnostic]:
    for name in names:
        if getattr(args, name.lstrip("-").replace("-", "_")) is not None:
            yield needs(name, needed)


def _without_effect(args: argparse.Namespace) -> Iterator[Diagnostic]:
    through_fifo = args.fifo or args.fast_fifo or args.fast_fifo_quad
    reasons = {
        "--rtl-preload": args.rtl_preload
        and ("--zero-sram" if args.zero_sram else "a FIFO" if through_fifo else None),
        "--rtl-preload-weights": args.rtl_preload_weights and kept_from_preloading(args),
        "--result-output": args.result_output
        and next((o for o in ("mlator", "one_shot", "stop_start") if getattr(args, o)), None),
        "--mlator": args.mlator and "RTL simulation, which reads the data memory",
        "--no-compact-data": not args.compact_data and args.input_csv and "--input-csv",
    }
    for option, reason in reasons.items():
        if reason:
            name = f"--{reason.replace('_', '-')}" if "_" in reason else reason
            yield no_effect(option, f"together with {name}")
