"""Rules between the keys of a description that need neither chip nor weights.

Each rule is a generator with a docstring that says why; `errors` runs all of them.
Source: docs/errors.md, "Reading a description".
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from functools import wraps
from typing import assert_never

from ai8xtools.diagnostics import Diagnostic, Severity
from ai8xtools.synthesis.facts import Fact, effects
from ai8xtools.synthesis.network import MAX_TAPS, Combination, Operator
from ai8xtools.synthesis.parse.closest import closest
from ai8xtools.synthesis.parse.description import Description, LayerDescription

Rule = Callable[[LayerDescription, Description], Iterator[Diagnostic]]
LAYER_RULES: list[Rule] = []
_ELSEWHERE = "Kernels of other sizes are for --device MCU only."


def rule(*blocks: Fact) -> Callable[[Rule], Rule]:
    """Register a rule; after its complaint about a layer, the facts `blocks` are not known."""

    def register(test: Rule) -> Rule:
        @wraps(test)
        def declared(layer: LayerDescription, whole: Description) -> Iterator[Diagnostic]:
            for complaint in test(layer, whole):
                yield replace(complaint, effects=effects(blocks))

        LAYER_RULES.append(declared)
        return declared

    return register


def operation(layer: LayerDescription) -> tuple[Operator, Combination | None]:
    """Return a layer's operator and element-wise combination, from `op` and `eltwise`."""
    operator, combination = layer.get("op", (Operator.CONV2D, None))
    return operator, combination or layer.get("eltwise")


def kernel(layer: LayerDescription) -> tuple[int, int]:
    """Return a layer's kernel as (rows, columns); a Conv1d has one column."""
    operator, _ = operation(layer)
    if not operator.convolves or "kernel_size" not in layer:
        return _default_kernel(operator)
    rows, columns = layer.get("kernel_size")
    return rows, columns or 1


def _default_kernel(operator: Operator) -> tuple[int, int]:
    match operator:
        case Operator.CONV1D:
            return MAX_TAPS, 1
        case Operator.CONV2D | Operator.CONVTRANSPOSE2D:
            return 3, 3
        case Operator.LINEAR | Operator.NONE:
            return 1, 1
        case _:
            assert_never(operator)


@rule(Fact.SIZES)
def operands_need_combination(layer: LayerDescription, _: Description) -> Iterator[Diagnostic]:
    """Several operands need an element-wise operation that combines them."""
    if "operands" in layer and operation(layer)[1] is None:
        yield layer.error(
            "E120",
            f"'operands' is {layer.get('operands')} without an element-wise operation",
            "operands",
            remedy="Add eltwise: add (or sub, or, xor), or remove 'operands'.",
        )


@rule(Fact.SIZES)
def kernel_fits_operator(layer: LayerDescription, whole: Description) -> Iterator[Diagnostic]:
    """The multipliers are wired for 1x1 and 3x3 kernels, and for 1 to 9 taps in a row."""
    if "kernel_size" not in layer:
        return
    operator, _combination = operation(layer)
    rows, columns = layer.get("kernel_size")
    text = f"{rows}x{columns}" if columns else str(rows)
    allowed = _kernels(operator)
    if not whole.limited and operator.convolves:
        yield from _kernel_of_any_size(layer, operator)
    elif text not in allowed:
        limit = f"{operator} takes {', '.join(allowed)}" if allowed else "a linear layer has none"
        remedy = _kernel_remedy(operator, rows, columns)
        yield layer.error("E121", f"'kernel_size' is {text}, {limit}", "kernel_size", remedy=remedy)


def _kernel_of_any_size(layer: LayerDescription, operator: Operator) -> Iterator[Diagnostic]:
    """Complain of a kernel with the wrong number of dimensions: there are no limits of a chip."""
    rows, columns = layer.get("kernel_size")
    if operator.one_dimensional and (columns or rows < 1):
        expected, remedy = "a length", f"Use kernel_size: {max(rows, 1)}."
    elif not operator.one_dimensional and not columns:
        length = max(rows, 1)
        expected, remedy = "rows x columns", f"Use kernel_size: {length}x{length}."
    else:
        return
    text = f"{rows}x{columns}" if columns else str(rows)
    message = f"'kernel_size' is {text}, {operator} takes {expected}"
    yield layer.error("E121", message, "kernel_size", remedy=remedy)


def _kernels(operator: Operator) -> tuple[str, ...]:
    """Return the kernels that an operator takes."""
    match operator:
        case Operator.CONV2D:
            return ("1x1", "3x3")
        case Operator.CONVTRANSPOSE2D:
            return ("3x3",)
        case Operator.CONV1D | Operator.NONE:
            return tuple(map(str, range(1, MAX_TAPS + 1)))
        case Operator.LINEAR:
            return ()
        case _:
            assert_never(operator)


def _kernel_remedy(operator: Operator, rows: int, columns: int) -> str:
    """Name what an operator takes instead of a kernel; of a length `columns` is 0."""
    longest = max(rows, columns)
    match operator:
        case Operator.LINEAR:
            return "Remove the key."
        case Operator.NONE:
            return "Remove the key: the layer has no kernel."
        case Operator.CONVTRANSPOSE2D:
            return f"Use kernel_size: 3x3. {_ELSEWHERE}"
        case Operator.CONV1D:
            usable = f"Use kernel_size: {min(max(longest, 1), MAX_TAPS)}."
            return usable if columns or rows <= MAX_TAPS else f"{usable} {_ELSEWHERE}"
        case Operator.CONV2D if longest > 3:
            return f"Several small kernels replace a large one. {_ELSEWHERE}"
        case Operator.CONV2D:
            return f"Use kernel_size: {'1x1' if longest <= 1 else '3x3'}. {_ELSEWHERE}"
        case _:
            assert_never(operator)


@rule()
def stride_is_fixed(layer: LayerDescription, whole: Description) -> Iterator[Diagnostic]:
    """The stride of convolutions is one, that of transposed ones two; pooling decimates."""
    operator, _combination = operation(layer)
    if "stride" not in layer or (operator.convolves and not whole.limited):
        return
    expected = 2 if operator.transposed else 1
    if layer.get("stride") != (expected, expected):
        rows, columns = layer.get("stride")
        yield layer.error(
            "E122",
            f"'stride' is {rows}/{columns}, {operator} works with {expected}",
            "stride",
            remedy="Remove the key: a transposed convolution always doubles the size. "
            "Other strides are for --device MCU only."
            if expected == 2
            else "Use pool_stride (with or without pooling) to reduce the size. "
            "Other strides are for --device MCU only.",
        )


@rule()
def pool_dilation_needs_pool(layer: LayerDescription, _: Description) -> Iterator[Diagnostic]:
    """Pool dilation spreads the taps of a pooling window, so it needs pooling."""
    if "pool_dilation" in layer and "max_pool" not in layer and "avg_pool" not in layer:
        yield layer.error(
            "E123",
            "'pool_dilation' without 'max_pool' or 'avg_pool'",
            "pool_dilation",
            remedy="Remove it or add the pooling.",
        )


@rule()
def pool_first_needs_both(layer: LayerDescription, _: Description) -> Iterator[Diagnostic]:
    """The order of pooling and combination matters only if a layer has both."""
    window = layer.get("max_pool", layer.get("avg_pool", (1, 1)))
    if layer.get("pool_first", True) or (window != (1, 1) and operation(layer)[1]):
        return
    yield layer.error(
        "E124",
        "'pool_first: false' needs pooling and an element-wise operation in the same layer",
        "pool_first",
        remedy="Add eltwise: add, if the inputs are to be added."
        if window != (1, 1) and not operation(layer)[1] and len(layer.get("in_sequences", ())) > 1
        else "Remove the key.",
    )


@rule()
def passthrough_has_no_dilation(layer: LayerDescription, _: Description) -> Iterator[Diagnostic]:
    """A layer without a kernel has no taps that dilation could spread."""
    if "dilation" in layer and not operation(layer)[0].weighted:
        yield layer.error("E125", "'dilation' on a layer without a kernel", "dilation")


@rule(Fact.SIZES)
def passthrough_has_no_activation(layer: LayerDescription, _: Description) -> Iterator[Diagnostic]:
    """Pass-through layers do not post-process their data, so they have no activation."""
    if layer.get("activate") is not None and not operation(layer)[0].weighted:
        yield layer.error(
            "E126",
            f"'activate' is {layer.get('activate')} on a layer without a convolution",
            "activate",
            remedy="Put the activation on the layer before or after.",
        )


@rule(Fact.SIZES)
def buffer_shift_needs_source(layer: LayerDescription, _: Description) -> Iterator[Diagnostic]:
    """Shifting moves the entries of a rolling buffer, which `in_sequences` must name."""
    if "buffer_shift" not in layer:
        return
    if "in_sequences" not in layer:
        yield layer.error("E127", "'buffer_shift' without 'in_sequences'", "buffer_shift")
    if operation(layer)[0].weighted:
        yield layer.error(
            "E127", "'buffer_shift' on a layer that is not a passthrough", "buffer_shift"
        )


@rule(Fact.SIZES)
def buffer_insert_needs_offset(layer: LayerDescription, whole: Description) -> Iterator[Diagnostic]:
    """The output offset is the position in the buffer, so it must be given."""
    if whole.placed and "buffer_insert" in layer and "out_offset" not in layer:
        yield layer.error("E128", "'buffer_insert' without 'out_offset'", "buffer_insert")


@rule(Fact.SIZES)
def buffer_reader_is_explicit(layer: LayerDescription, whole: Description) -> Iterator[Diagnostic]:
    """The place of a rolling buffer and the part that is read must be given."""
    buffers = {b.get("name") for b in whole.get("data_buffer", ())}
    if not buffers & set(layer.get("in_sequences", ())):
        return
    offsets = ("in_offset", "out_offset") if whole.placed else ()
    needed = (*offsets, "in_dim", "in_channels")
    missing = [key for key in needed if key not in layer]
    if missing:
        yield layer.error(
            "E132",
            f"reads a data buffer without {', '.join(missing)}",
            "in_sequences",
            remedy=f"State {', '.join(needed)} in this layer.",
        )


@rule()
def pairs_are_equal(layer: LayerDescription, _: Description) -> Iterator[Diagnostic]:
    """Rows and columns share one register field, so both values must be equal."""
    for key in ("dilation", "output_pad"):
        rows, columns = layer.get(key, (0, 0))
        if rows != columns:
            yield layer.error(
                "E133",
                f"'{key}' is {rows}/{columns}, rows and columns must be equal",
                key,
                remedy=f"Use {key}: {min(rows, columns)}.",
            )


@rule(Fact.SIZES)
def names_are_unique(layer: LayerDescription, whole: Description) -> Iterator[Diagnostic]:
    """Names of layers must be unique; `stop` and `input` are reserved."""
    name = (layer.name or "").lower()
    if name in ("stop", "input"):
        yield layer.error("E129", f"the name '{layer.name}' is reserved", "name")
    other = whole.layer_named(name) if name else None
    if other is not None and other.index < layer.index:
        yield layer.error(
            "E129",
            f"the name '{layer.name}' already stands in line {other.place_of('name').line}",
            "name",
            remedy="Give each layer a name of its own.",
        )


@rule(Fact.SIZES, Fact.REFERENCE)
def references_exist(layer: LayerDescription, whole: Description) -> Iterator[Diagnostic]:
    """A layer that a key refers to must exist."""
    buffers = {b.get("name") for b in whole.get("data_buffer", ())}
    for key in ("in_sequences", "next_sequence", "simulated_sequence", "weight_source"):
        value = layer.get(key, ())
        for reference in value if isinstance(value, tuple) else (value,):
            if isinstance(reference, str) and not (
                whole.layer_named(reference) or (key == "in_sequences" and reference in buffers)
            ):
                names = [x.name for x in whole.layers if x.name]
                names += filter(None, buffers) if key == "in_sequences" else ()
                near = closest(reference, names)
                remedy = f"Did you mean '{near}'?" if near else "Add name: to that layer."
                parts = [part.strip() for part in reference.split(",")]
                if key == "in_sequences" and len(parts) > 1 and {*parts} <= {*names}:
                    remedy = f"Write a list: [{', '.join(parts)}]."
                yield layer.error(
                    "E130",
                    f"'{key}' names '{reference}', but no layer has this name",
                    key,
                    remedy=remedy,
                )


@rule(Fact.SIZES, Fact.REFERENCE)
def not_its_own_source(layer: LayerDescription, whole: Description) -> Iterator[Diagnostic]:
    """A layer cannot read its own output or weights before they exist."""
    for key in ("in_sequences", "weight_source"):
        value = layer.get(key, ())
        for reference in value if isinstance(value, tuple) else (value,):
            if layer_index(reference, whole) == layer.index:
                yield layer.error(
                    "E131",
                    f"'{key}' names the layer itself",
                    key,
                    remedy="Name an earlier layer, or input."
                    if key == "in_sequences"
                    else "Name another layer.",
                )


@rule()
def named_weights_are_taken(layer: LayerDescription, whole: Description) -> Iterator[Diagnostic]:
    """Only layers with their own weights use tensors, and only checkpoints name them."""
    if "weights" not in layer:
        return
    reason = remedy = None
    if not operation(layer)[0].weighted or layer.get("bypass", False):
        reason, remedy = "on a layer without weights", "Remove the key."
    elif "weight_source" in layer:
        reason, remedy = "beside 'weight_source'", "Keep one of the two."
    elif whole.get("arch") == "test":
        reason, remedy = "with 'arch: test', whose NumPy files name nothing", "Remove the key."
    if reason is not None:
        yield layer.error("E134", f"'weights' {reason}", "weights", remedy=remedy)


@rule(Fact.SIZES)
def zero_outputs_stand_behind_weights(
    layer: LayerDescription, _: Description
) -> Iterator[Diagnostic]:
    """Kernels of zeros can only follow those of a tensor or of copied channels."""
    own = operation(layer)[0].weighted and not layer.get("bypass", False)
    if "zero_outputs" in layer and (not own or layer.get("groups", 1) > 1):
        yield layer.error(
            "E136", "'zero_outputs' on a layer without weights for all channels", "zero_outputs",
            remedy="Remove the key.",
        )  # fmt: skip


@rule(Fact.SIZES)
def channels_are_copied_by_small_kernels(
    layer: LayerDescription, _: Description
) -> Iterator[Diagnostic]:
    """Each copied channel has one weight that is not zero; it needs two bits."""
    if "copy_channels" not in layer:
        return
    operator = operation(layer)[0]
    small = operator.convolves and not operator.transposed and kernel(layer) == (1, 1)
    reason = None if small else "on a layer without 1x1 kernels (Conv1d: kernel_size 1)"
    for key in ("weights", "weight_source", "output_shift", "bypass", "groups", "flatten"):
        reason = f"beside '{key}'" if key in layer else reason
    if layer.get("quantization", 8) not in (2, 4, 8):
        reason = f"with weights of {layer.get('quantization')} bits, it needs 2, 4 or 8"
    if layer.get("copy_channels")[1] < 1:
        reason = "of no channels"
    if reason is not None:
        yield layer.error("E137", f"'copy_channels' {reason}", "copy_channels")


def layer_index(reference: int | str, whole: Description) -> int | None:
    """Return the index that a reference by number or name means; None for an unknown name."""
    if isinstance(reference, int):
        return reference
    layer = whole.layer_named(reference)
    return layer.index if layer else None


def errors(layer: LayerDescription, whole: Description) -> Iterator[Diagnostic]:
    """Run every rule on a layer."""
    for test in LAYER_RULES:
        yield from test(layer, whole)


def warnings(
    layers: Iterable[LayerDescription], *, placed: bool, faulty: Container[int] = ()
) -> Iterator[Diagnostic]:
    """Report which important keys have their default values.

    Of layers that are `faulty` (their id), keys may be missing because they were refused.
    """
    for layer in layers:
        operator, _ = operation(layer)
        missing = []
        if "op" not in layer:
            missing.append(("op", "Conv2d"))
        if placed and "out_offset" not in layer:
            missing.append(("out_offset", "0"))
        pooled = "max_pool" in layer or "avg_pool" in layer
        if pooled and "pool_stride" not in layer:
            missing.append(("pool_stride", "1"))
        for key, default in missing if id(layer) not in faulty else ():
            yield Diagnostic(
                "W150",
                f"{layer}: '{key}' is not given, {default} is used",
                layer.place,
                severity=Severity.WARNING,
            )
        wide = layer.get("output_width") == 32  # such an output cannot have one
        if operator.weighted and "activate" not in layer and not wide and id(layer) not in faulty:
            yield Diagnostic(
                "N151",
                f"{layer}: 'activate' is not given, there is no activation",
                layer.place,
                severity=Severity.NOTICE,
            )
