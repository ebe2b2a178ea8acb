"""quantize.py --search-bits: widths of weights within a budget, and the QAT policy for them."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from ai8xtools.checkpoint import Checkpoint
from ai8xtools.checkpoint.atomic import write_bytes
from ai8xtools.commands.quantize.arguments import CalibrationOptions, NetworkOptions, SearchOptions
from ai8xtools.commands.quantize.calibrator import prepare
from ai8xtools.commands.train.fits import fits_of_run
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization import Calibration, weight_names
from ai8xtools.quantization.bit_search import Step, least_bytes, search, sensitivities, within
from ai8xtools.reading import tables
from ai8xtools.reading.progress import tracked

FITS = "FITS"


def search_bits(
    checkpoint: Checkpoint,
    source: NetworkOptions,
    calibration: CalibrationOptions,
    options: SearchOptions,
) -> tuple[Calibration, list[Step], Step]:
    """Return integers of the best widths within the budget, all steps, and the chosen one.

    Prints the steps. Raises InputError E713 for a budget that no widths can meet.
    """
    _refuse_hopeless(checkpoint, options.budget)
    case = prepare(checkpoint, source, calibration)
    layers = sensitivities(case.trained, case.simulated, case.samples)
    steps = search(layers, case.trained, case.simulated, case.samples)
    if options.budget == FITS:
        chosen = first_that_fits(steps, source, calibration, case.arch)
    else:
        chosen = within(steps, budget_bytes(options.budget, steps[0].size_bytes))
    print(f"Bits by sensitivity, {case.count} samples of {case.dataset}:\n{curve(steps, chosen)}")
    integers = {one.name: one.integers[chosen.bits[one.name]] for one in layers}
    notes = {"calibration_dataset": case.dataset, "calibration_samples": case.count}
    if options.policy is not None:
        write_bytes(options.policy, policy_text(chosen.bits).encode())
    return Calibration(integers, notes, case.constant), steps, chosen


def budget_bytes(budget: str, with_eight_bits: int) -> int:
    """Return the bytes of a budget, a number of bytes or a share like 40%."""
    if budget.endswith("%"):
        return int(with_eight_bits * float(budget[:-1]) / 100)
    return int(budget)


def _refuse_hopeless(checkpoint: Checkpoint, budget: str) -> None:
    """Raise InputError E713 before anything is measured."""
    if budget == FITS:
        return
    weights = [checkpoint.state_dict[name].size for name in weight_names(checkpoint)]
    allowed, least = budget_bytes(budget, sum(weights)), least_bytes(weights)
    if allowed < least:
        raise InputError(
            "E713",
            f"{budget} are {allowed} bytes; the weights take {least} with the fewest bits"
            if budget.endswith("%")
            else f"the weights take {least} bytes with the fewest bits, more than {allowed}",
            "--budget",
            "Allow more, or train a smaller network.",
        )


def first_that_fits(
    steps: Sequence[Step], source: NetworkOptions, calibration: CalibrationOptions, arch: str
) -> Step:
    """Return the step with the most bits that fits the chip."""
    from ai8xtools.training.options import TrainingOptions

    reasons: tuple[str, ...] = ()
    for step in tracked("Searching for what fits, at most", steps):
        with tempfile.TemporaryDirectory() as folder:
            policy = str(Path(folder, "policy.yaml"))
            write_bytes(policy, policy_text(step.bits).encode())
            options = TrainingOptions(
                arch=arch,
                dataset=calibration.dataset,
                device=source.chip.die,
                qat_policy=policy,
            )
            (fit,) = fits_of_run(options, (source.chip,))
        if fit.fits:
            return step
        reasons = fit.reasons
    raise InputError(
        "E713",
        f"no widths make the network fit {source.chip.name}: {'; '.join(reasons)}",
        "--budget",
        "Train a smaller network; train.py --fits shows what each layer takes.",
    )


def curve(steps: Sequence[Step], chosen: Step) -> str:
    """Return a table with a row per step; the chosen one is marked."""
    rows = [
        (
            "*" if step is chosen else "",
            step.size_bytes,
            f"{100 * step.size_bytes / steps[0].size_bytes:.1f}%",
            f"{step.snr_db:.1f}",
            f"{100 * step.same:.1f}%",
            " ".join(f"{name}:{bits}" for name, bits in step.bits.items()),
        )
        for step in steps
    ]
    headers = ("", "bytes", "of 8 bits", "SNR/dB", "same result", "bits")
    return tables.table(rows, headers)


def policy_text(bits: Mapping[str, int]) -> str:
    """Return a QAT policy with these widths, for a training that starts from the checkpoint."""
    usual = Counter(bits.values()).most_common(1)[0][0]
    lines = [
        "# Widths chosen by quantize.py --search-bits. Continue the training of the checkpoint:",
        "# train.py --exp-load-weights-from FILE --qat-policy THIS_FILE",
        "start_epoch: 0",
        f"weight_bits: {usual}",
    ]
    others = {name: width for name, width in bits.items() if width != usual}
    lines += ["overrides:"] * bool(others)
    for name, width in others.items():
        lines += [f"  {name}:", f"    weight_bits: {width}"]
    return "\n".join(lines) + "\n"
