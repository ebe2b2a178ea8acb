"""The pictures of the memories: kernels by processor and column, data by layer and instance."""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.synthesis.memory import DataLoss, DataRange, MemoryStep, numbers_text
from ai8xtools.synthesis.report.values import KernelArea, Report
from ai8xtools.values import frozen
from device.chip import PROCESSORS

# Kernels
_KERNEL_WIDTH, _ROW = 960, 7
_LABEL_WIDTH, _LABEL_HEIGHT = 20, 12

# Data: a row for each layer, in it a cell for each kind of instance, in it the addresses
_CELLS_WIDTH, _CELL_MOST, _CELL_GAP = 1000, 480, 6
_STEP, _BAR = 22, 16
_HEAD, _MARGIN = 26, 150
_MOST_BEYOND = 1.5
"""A cell shows at most this multiple of an instance, however much too large the data is."""
_LEAST, _THIN = 1.5, 4
_MEANINGS = {"input": "read here", "output": "written here", "alive": "needed later"}


@frozen
class KernelPicture:
    """The kernel map, `scale` pixels a column and `row` a processor.

    `capacities` are the columns of every processor; `labels` (layer, x, y) are of areas that have
    room for a number.
    """

    width: int
    row: int
    scale: float
    capacities: tuple[int, ...]
    areas: tuple[KernelArea, ...]
    labels: tuple[tuple[int, float, float], ...]


def kernel_picture(report: Report) -> KernelPicture:
    """Scale the kernel map to the width of the page."""
    capacities = tuple(map(report.chip.kernel_capacity, range(PROCESSORS)))
    scale = _KERNEL_WIDTH / max(capacities)
    return KernelPicture(
        _KERNEL_WIDTH,
        _ROW,
        round(scale, 5),
        capacities,
        report.kernel_areas,
        tuple(_labels(report.kernel_areas, scale)),
    )


def _labels(areas: tuple[KernelArea, ...], scale: float) -> Iterator[tuple[int, float, float]]:
    for area in areas:
        width = (area.column_end - area.column) * scale
        height = (area.processor_end - area.processor) * _ROW
        if width >= _LABEL_WIDTH and height >= _LABEL_HEIGHT:
            x = (area.column + area.column_end) * scale / 2
            yield area.layer, round(x, 1), (area.processor + area.processor_end) * _ROW / 2


@frozen
class Bar:
    """Bars of one piece of data in all its instances: a thick line in each cell.

    `path` is that of SVG, `height` is the width of the line. `kind` is input, output, alive, race
    (own input overwritten) or lost.
    """

    owner: int
    kind: str
    path: str
    height: str
    title: str


@frozen
class MemoryRow:
    """One executed layer at height `y`; `losses` are the bars that show what goes wrong."""

    layer: int
    y: int
    bars: tuple[Bar, ...]

    @property
    def losses(self) -> tuple[Bar, ...]:
        """What is overwritten too early, perhaps (`race`) or for certain (`lost`)."""
        return tuple(bar for bar in self.bars if bar.kind in ("race", "lost"))


@frozen
class InstanceCell:
    """Memory instances that hold the same at every time: left edge and numbers as text."""

    x: int
    instances: tuple[int, ...]

    @property
    def label(self) -> str:
        """The numbers, runs shortened."""
        return numbers_text(self.instances)


@frozen
class MemoryPicture:
    """The data memory over time; `cells` are `cell` pixels wide.

    Cells show the addresses up to `shown`, all of what is used; `limit` is how far the end of an
    instance's memory is from the left edge, None where it lies beyond.
    """

    width: int
    height: int
    head: int
    cell: int
    shown: int
    limit: float | None
    cells: tuple[InstanceCell, ...]
    unused: str
    rows: tuple[MemoryRow, ...]


def memory_picture(report: Report) -> MemoryPicture:
    """Draw every executed layer's data, cells scaled alike to what is used."""
    most = report.chip.instance_bytes
    largest = max((use.end for use in report.instances), default=0)
    shown = min(max(1, largest), round(_MOST_BEYOND * most))
    groups = _groups(report)
    width = min(_CELL_MOST, (_CELLS_WIDTH - _CELL_GAP * len(groups)) // max(1, len(groups)))
    cells = tuple(
        InstanceCell(_MARGIN + i * (width + _CELL_GAP), instances)
        for i, instances in enumerate(groups)
    )
    scale = _Scale(width / shown, shown, width, cells)
    rows = tuple(_row(step, _HEAD + i * _STEP, scale) for i, step in enumerate(report.memory))
    used = {i for instances in groups for i in instances}
    return MemoryPicture(
        width=_MARGIN + len(cells) * (width + _CELL_GAP),
        height=_HEAD + len(rows) * _STEP,
        head=_HEAD,
        cell=width,
        shown=shown,
        limit=round(most * scale.pixels, 1) if most <= shown else None,
        cells=cells,
        unused=numbers_text(tuple(i for i in range(len(report.instances)) if i not in used)),
        rows=rows,
    )


def _groups(report: Report) -> list[tuple[int, ...]]:
    """Return the instances that are used, those together that hold the same at every time."""
    groups: dict[tuple[tuple[int, int], ...], list[int]] = {}
    steps = [
        [*((0, data.instances) for data in step.ranges),
         *((1, loss.instances) for loss in step.losses)]
        for step in report.memory
    ]  # fmt: skip
    for use in report.instances:
        held = tuple(
            (number, at)
            for number, parts in enumerate(steps)
            for at, (_, instances) in enumerate(parts)
            if use.instance in instances
        )
        if held:
            groups.setdefault(held, []).append(use.instance)
    return [tuple(instances) for instances in groups.values()]


@frozen
class _Scale:
    """Pixels a byte, the address at which a cell ends, and the cells, `width` pixels wide."""

    pixels: float
    shown: int
    width: int
    cells: tuple[InstanceCell, ...]

    def bar(
        self,
        owner: int,
        kind: str,
        data: DataRange | DataLoss,
        top: float,
        height: float,
        title: str,
    ) -> Bar:
        """Return a bar from begin to end of the data in its instances; the least can be seen."""
        left = min(data.begin, self.shown) * self.pixels
        width = max(_LEAST, min(data.end, self.shown) * self.pixels - left)
        left = min(left, self.width - width)
        y = _short(top + height / 2)
        parts = (
            f"M{_short(cell.x + left)} {y}h{_short(width)}"
            for cell in self.cells
            if cell.instances[0] in data.instances
        )
        return Bar(owner, kind, "".join(parts), _short(height), title)


def _row(step: MemoryStep, y: int, scale: _Scale) -> MemoryRow:
    kinds = (("input", step.inputs), ("alive", step.alive), ("output", (step.output,)))
    top = y + (_STEP - _BAR) // 2
    bars = [_bar(kind, data, top, scale) for kind, ranges in kinds for data in ranges]
    for loss in step.losses:
        kind, height = ("race", _THIN) if loss.own_input else ("lost", _BAR)
        text = _loss_text(step.layer, loss)
        bars.append(scale.bar(loss.owner, kind, loss, top + _BAR - height, height, text))
    return MemoryRow(step.layer, y, tuple(bars))


def _bar(kind: str, data: DataRange, top: int, scale: _Scale) -> Bar:
    """Draw a range; one with gaps as a thin bar, so that others fit between its words."""
    shares = data.step_bytes // data.piece_bytes
    height = _BAR / shares
    lane = data.begin // data.piece_bytes % shares
    gaps = f" with gaps of {data.step_bytes - data.piece_bytes}" if shares > 1 else ""
    title = (
        f"{_owner_text(data.owner)}, {_MEANINGS[kind]}: 0x{data.begin:x} to 0x{data.end - 1:x}"
        f"{gaps}, {data.size_bytes:,} bytes in {_instances_text(data.instances)}"
    )
    return scale.bar(data.owner, kind, data, top + lane * height, height, title)


def _loss_text(layer: int, loss: DataLoss) -> str:
    where = f"0x{loss.begin:x} to 0x{loss.end - 1:x} in {_instances_text(loss.instances)}"
    if loss.own_input:
        return (
            f"Layer {layer} overwrites its own input ({_owner_text(loss.owner)}) at {where}: "
            "right only if it has read these bytes by then."
        )
    return (
        f"Layer {layer} overwrites {_owner_text(loss.owner)} at {where}, which a later layer reads."
    )


def _owner_text(owner: int) -> str:
    return "the input" if owner < 0 else f"layer {owner}"


def _instances_text(instances: tuple[int, ...]) -> str:
    return f"instance{'s' if len(instances) > 1 else ''} {numbers_text(instances)}"


def _short(value: float) -> str:
    """Return a coordinate with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")
