"""The picture of the network: one box for each layer, arrows from what it reads."""

from __future__ import annotations

from ai8xtools.synthesis.report.values import LayerRow, Report
from ai8xtools.values import frozen

_INPUT = -1
_WIDTH, _HEIGHT, _PITCH = 640, 28, 44
_MARGIN, _LANE = 8, 14
_NAME_CHARACTERS, _TEXT_CHARACTERS = 16, 58


@frozen
class Box:
    """A layer (-1: the sample) with its texts; `y` is its upper edge."""

    layer: int
    y: int
    name: str
    text: str
    shape: str
    title: str


@frozen
class Arrow:
    """An arrow as the data of an SVG path."""

    path: str
    title: str


@frozen
class GraphPicture:
    """Boxes one below the other; arrows that pass others run in lanes on the right."""

    width: int
    height: int
    left: int
    box_width: int
    box_height: int
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def graph_picture(report: Report) -> GraphPicture:
    """Lay out the executed layers in the order of execution."""
    rows = {layer.index: layer for layer in report.layers}
    order = [step.layer for step in report.memory]
    boxes = [_input_box(rows[order[0]])]
    boxes += [_box(rows[index], place) for place, index in enumerate(order, 1)]
    places = {box.layer: place for place, box in enumerate(boxes)}
    straight: list[Arrow] = []
    passing: list[tuple[int, int]] = []
    for index in order:
        for source in rows[index].sources:
            if source not in places:
                continue
            if places[index] - places[source] == 1:
                straight.append(_straight(places[source], source, index))
            else:
                passing.append((source, index))
    arrows, lanes = _around(passing, places)
    return GraphPicture(
        width=2 * _MARGIN + _WIDTH + _LANE * (lanes + 1),
        height=2 * _MARGIN + (len(boxes) - 1) * _PITCH + _HEIGHT,
        left=_MARGIN,
        box_width=_WIDTH,
        box_height=_HEIGHT,
        boxes=tuple(boxes),
        arrows=(*straight, *arrows),
    )


def shape_text(shape: tuple[int, int, int]) -> str:
    """Return channels × rows × columns."""
    return "×".join(map(str, shape))


def _top(place: int) -> int:
    return _MARGIN + place * _PITCH


def _input_box(first: LayerRow) -> Box:
    channels, rows, columns = first.input
    shape = shape_text((channels * first.operands, rows, columns))
    return Box(_INPUT, _top(0), "input", "", shape, f"input {shape}")


def _box(layer: LayerRow, place: int) -> Box:
    name = layer.name or ""
    text = f"{layer.pooling} → {layer.operator}" if layer.pooling else layer.operator
    title = f"{layer.index} {name}: {text}, {shape_text(layer.input)} to {shape_text(layer.output)}"
    return Box(
        layer.index,
        _top(place),
        cut_name(name, _NAME_CHARACTERS),
        _cut(text, _TEXT_CHARACTERS),
        shape_text(layer.output),
        title,
    )


def cut_name(name: str, limit: int) -> str:
    """Leave out the middle of a long name: the ends are what tells layers apart."""
    tail = limit // 2
    return name if len(name) <= limit else f"{name[: limit - 1 - tail]}…{name[-tail:]}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _title(source: int, target: int) -> str:
    return f"{'input' if source == _INPUT else f'layer {source}'} to layer {target}"


def _straight(place: int, source: int, target: int) -> Arrow:
    x = _MARGIN + _WIDTH // 2
    return Arrow(f"M{x} {_top(place) + _HEIGHT}V{_top(place + 1)}", _title(source, target))


def _around(passing: list[tuple[int, int]], places: dict[int, int]) -> tuple[list[Arrow], int]:
    """Give each arrow the first lane that is free along its way; return them and the lanes."""
    ends: list[int] = []  # of each lane: the place up to which it is taken
    arrows = []
    right = _MARGIN + _WIDTH
    for source, target in sorted(passing, key=lambda pair: min(places[i] for i in pair)):
        upper, lower = sorted((places[source], places[target]))
        lane = next((i for i, end in enumerate(ends) if end <= upper), len(ends))
        ends[lane : lane + 1] = [lower]
        x = right + _LANE * (lane + 1)
        # Arrows leave a box below its middle and arrive above it, so that both can be told apart.
        begin, end = _top(places[source]) + _HEIGHT * 2 // 3, _top(places[target]) + _HEIGHT // 3
        arrows.append(Arrow(f"M{right} {begin}H{x}V{end}H{right}", _title(source, target)))
    return arrows, len(ends)
