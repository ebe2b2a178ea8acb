"""Known answers about memory levels: schemes.json and dma.json of the set `planner`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ai8xtools.software.plan.geometry import Geometry
from ai8xtools.software.plan.schemes import (
    Cut,
    Pixels,
    Planes,
    Room,
    Rows,
    Scheme,
    cuts_of,
    first,
    plane_memory,
    resident_memory,
    row_memory,
    smallest,
)
from tests.software.oracle.order import Event, pixel_events, plane_events, row_events

Case = tuple[str, list[str]]


def layer_of(told: dict[str, Any]) -> tuple[Geometry, Room]:
    """Return a layer of schemes.json, and the room that it has."""
    reach = tuple((told[key] - 1) * told["d"] + 1 for key in ("K", "Kw"))
    size = (told["H"], told["W"])
    made = [(n + 2 * told["p"] - r) // told["s"] + 1 for n, r in zip(size, reach, strict=True)]
    bits = round(told["K"] * told["Kw"] * told["C"] * told["ew"] * 8)
    layer = Geometry(
        in_size=size, channels=told["C"], out_size=(made[0], made[1]), filters=told["O"],
        reach=(reach[0], reach[1]), kernel=(told["K"], told["Kw"]), stride=(told["s"],) * 2,
        pad=(told["p"],) * 2, in_bytes=told["e"], out_bytes=told["eo"], filter_bits=bits,
        weight_bytes=-(-told["O"] * bits // 8) + told["bias_bytes"],
    )  # fmt: skip
    room = Room(l1=told["l1"], l2=told["l2"], align=told["align"], dma=told["dma"],
                in_place=told["weights"] == "in_place", scratch=told["scr"],
                reads=False, writes=False)  # fmt: skip
    return layer, room


def scheme_answer(layer: Geometry, room: Room) -> dict[str, Any]:
    """Return what schemes.json says of a layer, computed by the planner."""
    found: dict[str, Any] = {
        "OH": layer.out_size[0],
        "OW": layer.out_size[1],
        "Kd": layer.reach[0],
        "Wt": layer.weight_bytes,
        "M0": resident_memory(layer, room),
    }
    filters, weights = layer.filters, 0
    if not room.in_place:
        filters, weights = 1, room.pair(layer.bytes_of_filters(1))
    width = layer.out_size[1]
    found["M1"] = row_memory(layer, room, 1, width, weights, filters)
    one = Planes(filters=1, rows=1, columns=width, memory=0)
    found["M2"] = plane_memory(layer, room, one)
    for way, cut in cuts_of(layer, room).items():
        if way is not Scheme.RESIDENT:  # the memory M0 tells of it
            found[way] = None if cut is None else _told(cut)
    for way in (Scheme.ROW_TILES,):
        if (tiled := found[way]) is not None:
            cut = cuts_of(layer, room)[way]
            assert isinstance(cut, Rows)
            found[way] = tiled | {"tiles": cut.tiles, "tw": cut.columns}
    chosen = first(layer, room)
    found["first"] = chosen or "error"
    if chosen is None:
        least = smallest(layer, room, by_planes=True)
        found |= {"smallest": least, "deficit": least - room.l1}
    return found


def _told(cut: Cut) -> dict[str, Any]:
    match cut:
        case Rows():
            return {"weights": cut.weights, "g": cut.band, "G": cut.filters, "M": cut.memory,
                    "traffic": cut.traffic}  # fmt: skip
        case Pixels():
            weights = "streamed" if cut.weights.filters_outer else cut.weights
            return {"weights": weights, "P": cut.count, "G": cut.filters, "M": cut.memory}
        case Planes():
            return {"G": cut.filters, "h": cut.rows, "tw": cut.columns, "M": cut.memory,
                    "sums": "L2" if cut.in_l2 else "L1"}  # fmt: skip


def events_of(told: dict[str, Any]) -> list[list[Any]]:
    """Return the order of a case of dma.json."""
    found: Iterator[Event]
    match told["scheme"]:
        case "rows":
            layer = Geometry(
                in_size=(told["H"], 1), channels=1, out_size=(told["OH"], 1), filters=1,
                reach=(told["Kd"], 1), stride=(told["s"], 1), pad=(told["p"], 0),
            )  # fmt: skip
            found = row_events(layer, told["g"], layer.ring_rows(told["g"], ahead=True))
        case "pixels":
            found = pixel_events(told["pixels"], told["P"])
        case _:
            found = plane_events(told["bands"], told["groups"], told["C"])
    return [[str(event.act), *event.numbers] for event in found]


def level_cases(folder: Path) -> Iterator[Case]:
    """Yield the cases of schemes.json and dma.json."""
    for name, case in _read(folder / "schemes.json").items():
        got, expected = scheme_answer(*layer_of(case["layer"])), case["answer"]
        wrong = [
            f"{key}: {got.get(key)}, not {expected.get(key)}"
            for key in sorted({*got, *expected})
            if got.get(key) != expected.get(key)
        ]
        yield f"scheme {name}", wrong
    for name, case in _read(folder / "dma.json").items():
        same = events_of(case) == case["events"]
        yield f"order {name}", [] if same else ["the order of copies differs"]


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
    return found
