"""Choose the places that a description leaves open.

The sample is loaded as HWC where that fits, else as CHW, else through a FIFO; results overwrite
inputs only where nothing else fits.
Source: docs/placement.md, "Places that are left open".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place, Severity, refuse_errors
from ai8xtools.synthesis.arrange.bounds import witness_of
from ai8xtools.synthesis.arrange.decode import DecodedPlaces
from ai8xtools.synthesis.arrange.dropping import GivenKey, culprits, given_keys, unkept
from ai8xtools.synthesis.arrange.keeping import UnreachableError
from ai8xtools.synthesis.arrange.links import TiedLayerError
from ai8xtools.synthesis.arrange.nominal import errors_anywhere
from ai8xtools.synthesis.arrange.polish import polished, simplified
from ai8xtools.synthesis.arrange.problem import problem_of
from ai8xtools.synthesis.arrange.result import layout_of
from ai8xtools.synthesis.arrange.rewrites import (
    folded,
    merged,
    with_copies,
    with_filled_passes,
    with_possible_pooling,
    with_separate_pooling,
    with_wider_weights,
)
from ai8xtools.synthesis.arrange.search import TRIES, search
from ai8xtools.synthesis.arrange.streams import obstacle, rings_of
from ai8xtools.synthesis.arrange.suitability import unsuited
from ai8xtools.synthesis.arrange.untying import untied
from ai8xtools.synthesis.arrange.values import Choice, Problem
from ai8xtools.synthesis.check import check
from ai8xtools.synthesis.layout import InputPort, Layout
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.options import PlaceOptions
from ai8xtools.synthesis.place import check_streams, place_what_fits
from ai8xtools.values import frozen
from device import Chip

_FEW_TRIES = 60
"""For each choice, where the question is only what would help."""


@frozen
class ChoiceOutcome:
    """The outcome of a choice: the places, or why there are none.

    `proven`: nothing can fit. `hopeless`: no other choice can help.
    """

    choice: Choice
    problem: Problem | None = None
    decoded: DecodedPlaces | None = None
    failure: str | None = None
    layers: tuple[int, ...] = ()
    of_data: bool = False
    proven: bool = False
    hopeless: bool = False


def arrange(
    network: Network, fixed: Layout, chip: Chip, options: PlaceOptions
) -> tuple[Network, Layout, tuple[Diagnostic, ...]]:
    """Return a network, its complete layout, and the messages about it.

    The network may have additional layers that only copy data. Everything that is fixed is kept.
    Raises DiagnosticError if no places are found, or none exist.
    """
    refuse_errors(tuple(unsuited(network, fixed)))
    network, loaded = folded(network, fixed)
    network, fixed = merged(network, fixed, chip)
    network, fixed, separate = with_separate_pooling(network, fixed, chip)
    network, fixed, pooled = with_possible_pooling(network, fixed, chip)
    network, fixed, filled = with_filled_passes(network, fixed)
    network, widened = with_wider_weights(network)
    network, fixed, notices, attempts = _attempts(network, fixed, chip, options)
    *_, last = attempts
    if last.problem is None or last.decoded is None:
        refuse_errors(tuple(errors_anywhere(network, chip)))
        raise DiagnosticError(_refusal(network, fixed, chip, options, attempts))
    layout = layout_of(last.problem, last.decoded, fixed)
    refuse_errors(tuple(unkept(network, fixed, layout)))
    if options.explain:
        from ai8xtools.synthesis.arrange.reasons import reasons_of  # only for people

        obstacles = tuple(a.failure for a in attempts if a.failure)
        reasons = reasons_of(last.problem, last.decoded, layout, fixed, obstacles)
        layout = replace(layout, reasons=reasons)
    return (
        network,
        layout,
        (*loaded, *widened, *separate, *pooled, *filled, *notices, *_notes(network, layout)),
    )


def _attempts(
    bare: Network, layout: Layout, chip: Chip, options: PlaceOptions
) -> tuple[Network, Layout, tuple[Diagnostic, ...], tuple[ChoiceOutcome, ...]]:
    """Try a network with the copies that it needs; with more where ties cannot be kept."""
    network, fixed, notices = with_copies(bare, layout, chip)
    stuck: TiedLayerError | None = None
    attempts: tuple[ChoiceOutcome, ...] = ()
    try:
        attempts = tuple(attempts_of(network, fixed, chip, options))
    except TiedLayerError as exc:
        stuck = exc
    if any(attempt.decoded for attempt in attempts):
        return network, fixed, notices, attempts
    changed, open_, moved = untied(bare, layout, chip)
    if moved:
        network, fixed, notices = with_copies(changed, open_, chip)
        attempts, notices = tuple(attempts_of(network, fixed, chip, options)), (*moved, *notices)
    elif stuck is not None:
        raise stuck
    return network, fixed, notices, attempts


def attempts_of(
    network: Network, fixed: Layout, chip: Chip, options: PlaceOptions, tries: int = TRIES
) -> Iterator[ChoiceOutcome]:
    """Yield the outcome of each choice, up to the first that succeeds."""
    for choice in choices_of(network, fixed, chip):
        attempt = attempted(network, fixed, chip, options, choice, tries)
        yield attempt
        if attempt.decoded is not None or attempt.hopeless:
            return


def fits(network: Network, fixed: Layout, chip: Chip, options: PlaceOptions, tries: int) -> bool:
    """Whether places are found for a network, with a number of tries for each choice."""
    try:
        return any(a.decoded for a in attempts_of(network, fixed, chip, options, tries))
    except DiagnosticError:
        return False


def choices_of(network: Network, fixed: Layout, chip: Chip) -> Iterator[Choice]:
    """Yield how the sample may arrive, the simplest ways first, as far as that is not fixed."""
    first = fixed.layers[network.first.index]
    planar = [first.channels_first] if first.channels_first is not None else [False, True]
    stated = [fixed.layers[layer.index].streaming for layer in network.executed()]
    least = max((i + 1 for i, s in enumerate(stated) if s), default=0)
    most = min(chip.max_streaming_layers, len(stated))
    most = next((i for i, s in enumerate(stated[:most]) if s is False), most)
    port = fixed.input_port
    if not port.is_fifo and not least:
        yield from (Choice(p) for p in planar)
    fifo = port if port.is_fifo else InputPort.FIFO
    begin = 0 if port.is_fifo and not least else max(least, 1)
    for count in range(begin, most + 1):
        yield from (Choice(p, fifo, count) for p in planar)
    if not port.is_fifo and not least:
        yield from (Choice(p, in_place=True) for p in planar)


def attempted(
    network: Network,
    fixed: Layout,
    chip: Chip,
    options: PlaceOptions,
    choice: Choice,
    tries: int = TRIES,
) -> ChoiceOutcome:
    """Try one choice."""
    reason = obstacle(network, chip, choice)
    if reason is not None:
        return ChoiceOutcome(choice, failure=reason, proven=True)
    rings = rings_of(network, chip, choice, options.streams)
    try:
        problem = problem_of(network, fixed, chip, choice, rings)
        problem = replace(problem, occupied=options.occupied)
    except UnreachableError as exc:
        return ChoiceOutcome(choice, failure=str(exc), proven=True)
    except DiagnosticError as refusal:
        if choice == Choice():
            raise
        return ChoiceOutcome(choice, failure=refusal.diagnostics[0].message, proven=True)
    witness = witness_of(problem)
    if witness is not None:
        hopeless = not witness.of_data
        return ChoiceOutcome(
            choice, problem, None, witness.text, witness.layers, witness.of_data, True, hopeless
        )
    decoded, count = search(problem, tries)
    if decoded.cost:
        return ChoiceOutcome(
            choice, problem, None, *_nearest_miss(problem, decoded, count),
            of_data=bool(decoded.lost), hopeless=not decoded.lost,
        )  # fmt: skip
    decoded = simplified(problem, polished(problem, decoded))
    if choice.streamed or choice.port.is_fifo:
        wrong = _stream_errors(network, layout_of(problem, decoded, fixed), chip, options)
        if wrong:
            return ChoiceOutcome(choice, problem, None, wrong)
    return ChoiceOutcome(choice, problem, decoded)


def _stream_errors(
    network: Network, layout: Layout, chip: Chip, options: PlaceOptions
) -> str | None:
    """Return why the loader refuses a stream; None if it does not."""
    placement, problems = place_what_fits(network, layout, chip, options)
    diagnostics = (
        *check(network, layout, chip), *problems,
        *check_streams(network, placement, chip, options),
    )  # fmt: skip
    errors = [d for d in diagnostics if d.severity.is_error]
    return errors[0].message if errors else None


def _nearest_miss(
    problem: Problem, decoded: DecodedPlaces, tries: int
) -> tuple[str, tuple[int, ...]]:
    """Say what did not fit in the best try."""
    parts = []
    layers: list[int] = []
    for index in decoded.over:
        load = next(x for x in problem.loads if x.layer == index)
        parts.append(f"the kernels of {problem.layer(index)} ({load.columns} columns)")
        layers.append(index)
    for cell in decoded.lost:
        member, *_ = problem.cells[cell].members
        parts.append(f"{problem.name(member)} ({4 * problem.cells[cell].words} bytes)")
        layers.append(max(problem.tensors[member].owner, 0))
    if decoded.bias_bytes:
        parts.append(f"{decoded.bias_bytes} bytes of biases")
    text = ", ".join(parts) or "joined parts in rising order"
    text += problem.occupied.beside
    return f"no places found after {tries} tries; in the best one there was no room for {text}", (
        *layers,
    )


def _notes(network: Network, layout: Layout) -> Iterator[Diagnostic]:
    """Yield what the user should know of the choices."""
    for layer in network.executed():
        if layout.layers[layer.index].in_place:
            yield layer.diagnostic(
                "N424",
                "the output overwrites input that has been read, which has not been verified on a "
                "chip; nothing else fits",
                "op",
                severity=Severity.NOTICE,
            )


def _refusal(
    network: Network,
    fixed: Layout,
    chip: Chip,
    options: PlaceOptions,
    attempts: Sequence[ChoiceOutcome],
) -> Diagnostic:
    """Return the message that no places were found: the first reason, then the other ways."""
    first, *_ = attempts
    lines = list(_other_ways(attempts))
    if given_keys(network, fixed):
        keys = culprits(
            network, fixed, lambda open_: fits(network, open_, chip, options, _FEW_TRIES)
        )
        if keys:
            return _not_together(str(first.failure), keys, lines)
    lines += _tried_remedies(network, fixed, chip, options, first)
    layer = network.layer(first.layers[0]) if first.layers else network.first
    refuse = _proven if first.proven else _not_found
    return refuse(str(first.failure), layer.place, "\n  ".join(lines) or None)


def _tried_remedies(
    network: Network, fixed: Layout, chip: Chip, options: PlaceOptions, first: ChoiceOutcome
) -> Iterator[str]:
    """Yield the remedies that were tried on this network, with their results."""
    from ai8xtools.synthesis.arrange.remedies import remedies  # only where nothing fits

    def helps(changed: Network, other: Chip) -> bool:
        if other is not chip and any(errors_anywhere(changed, other)):
            return False
        again, open_, _ = with_copies(changed, fixed, other)
        return fits(again, open_, other, options, _FEW_TRIES)

    concerned, alone = (first.layers, first.of_data), not options.occupied.names
    for text in remedies(network, chip, *concerned, helps, others=alone):
        yield f"Tried: {text}."
    if options.occupied.names:
        yield options.occupied.remedy.strip()


def _not_together(reason: str, keys: Sequence[GivenKey], lines: Sequence[str]) -> Diagnostic:
    """The places that the description fixes leave no room for the rest."""
    names = " and ".join(map(str, keys))
    first, *_ = keys
    return first.layer.diagnostic(
        "E423",
        f"{reason}; without {names} everything fits",
        first.key,
        "\n  ".join([f"Leave out {names}, or change the value.", *lines]),
    )


def _other_ways(attempts: Sequence[ChoiceOutcome]) -> Iterator[str]:
    """Yield a line for each further choice; what fails for the reason before is left out."""
    first, *others = attempts
    reasons = {first.failure}
    for attempt in others:
        if attempt.failure not in reasons:
            reasons.add(attempt.failure)
            yield f"{attempt.choice}: {attempt.failure}."


def _proven(reason: str, place: Place, rest: str | None) -> Diagnostic:
    """Some sum of what is needed exceeds what the chip has, wherever things stand."""
    return Diagnostic("E421", reason, place, rest)


def _not_found(reason: str, place: Place, rest: str | None) -> Diagnostic:
    """The search found no places, which is no proof that there are none."""
    return Diagnostic("E422", reason, place, rest)
