"""Plans for levels of memory: tasks of units, and the copies between memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ai8xtools.software.emit.code import RUNTIME, Code, flags_of, value_kind
from ai8xtools.software.graph import (
    Combine,
    Convolution,
    Copy,
    Insert,
    Pool,
    Roll,
    sources_of,
)
from ai8xtools.software.kernels import Packed
from ai8xtools.software.plan.buffers import DONE
from ai8xtools.software.plan.layers import (
    packed_groups,
    packed_planes,
    scratch_bytes,
    sums_bytes,
    window_bytes,
    windows_at_once,
)
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.schemes import Channels, Planes, Rows, Weights
from ai8xtools.software.plan.task import Level, Spot, Task


class Units(Code):
    """Describes how each task of a plan is cut and where its buffers are."""

    template = "levels.c.j2"
    caller = ("in", "out")

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.helpers |= {"keep_max.c", "keep_sum.c"}
        self.tasks = [one for task in plan.tasks for one in self._described(task)]

    @property
    def title(self) -> str:
        """The plan in a line."""
        plan = self.plan
        return f"Plan: memory levels, {plan.arena_bytes:,} bytes of L1, for {plan.core.name}"

    @property
    def table_bytes(self) -> int:
        """Bytes of tables, without weights."""
        return 160 * len(self.tasks)

    def files(self) -> Mapping[str, str]:
        """Return the functions of tasks, and the copies."""
        return {
            "nn_levels.h": (RUNTIME / "levels.h").read_text(encoding="utf-8"),
            "nn_levels.c": "".join(self._runs()),
            "nn_copies.c": (RUNTIME / "levels_copies.c").read_text(encoding="utf-8"),
        }

    def _runs(self) -> Iterator[str]:
        """Yield the functions that are used; all begin with the same line."""
        used = {task["kind"] for task in self.tasks}
        used |= {"rows"} if "chain" in used else set()  # its functions make the rows of chains
        kinds = (kind for kind in ("planes", "rows", "chain", "channels") if kind in used)
        for number, kind in enumerate(kinds):
            text = (RUNTIME / f"levels_{kind}.c").read_text(encoding="utf-8")
            first, newline, rest = text.partition("\n")
            yield rest if number else first + newline + rest

    def _buffer(self, task: Task, name: str) -> str:
        return self.at(self.plan.buffers.get((task.index, name)))

    def _pair(self, task: Task, name: str) -> list[str]:
        """Return two buffers; the first one twice if there is one only."""
        first = self._buffer(task, f"{name} 0")
        second = self._buffer(task, f"{name} 1")
        return [first, first if second == "NULL" else second]

    def _described(self, task: Task) -> Iterator[dict[str, Any]]:
        """Yield the values of a task for the template, those of a chain after its links."""
        if not task.links:
            yield self._task(task)
            return
        if isinstance(task.cut, Channels):
            yield from self._channels(task)
            return
        for link in task.links:
            yield self._task(link) | {"kind": "link"}
        yield {
            "number": task.index, "title": task.name, "kind": "chain",
            "out": self.base(task.step.target), "from": [self.base(s) for s in task.sources],
            "links": [link.index for link in task.links], "done": self._buffer(task, DONE),
        }  # fmt: skip

    def _channels(self, task: Task) -> Iterator[dict[str, Any]]:
        links = []
        for link in task.links:
            step, number, taps = link.step, link.index, 0
            if isinstance(step, Convolution):
                taps = step.kernel[0] * step.kernel[1]
                self.weights[number] = step.weights.reshape(-1)
            copied = taps and not link.in_place
            buffer = self._buffer(link, "weights 0")
            stored = f"stored_{number}" if copied else "NULL"
            weights = buffer if copied else f"weights_{number}" if taps else "NULL"
            links.append({"number": number, "weights": weights, "stored": stored, "taps": taps,
                          "buffer": buffer, "cut": link.cut})  # fmt: skip
            shape = self._layer(link) | {"scratch": "NULL", "pixels": "NULL", "sums": "NULL"}
            if isinstance(step, Pool):
                shape["average"] = int(step.kind.averages)
            yield shape | {"number": number, "title": link.name, "kind": "layer", "mode": "",
                           "flush": 0, "out": ""}  # fmt: skip
        assert task.layer is not None
        yield {
            "number": task.index, "title": task.name, "kind": "channels", "links": links,
            "out": self.base(task.step.target), "source": self.base(task.sources[0]),
            "work": self._pair(task, "work"), "channels": task.layer.channels,
            "ahead": int(task.ahead),
        }  # fmt: skip

    def _task(self, task: Task) -> dict[str, Any]:
        fields: dict[str, Any] = {"number": task.index, "title": task.name, "kind": "copy"}
        if task.step.target not in self.plan.passing:
            fields["out"] = self.base(task.step.target)
        match task.cut:
            case Rows():
                return fields | self._layer(task) | self._rows(task, task.cut)
            case Planes():
                return fields | self._layer(task) | self._planes(task, task.cut)
            case _:
                return fields | self._copies(task)

    def _copies(self, task: Task) -> dict[str, Any]:
        step = task.step
        match step:
            case Copy():
                return {"pieces": [
                    {"to": f"{self.base(step.target)} + {p.to_start}", "to_step": p.to_step,
                     "from": f"{self.base(p.source)} + {p.from_start}", "from_step": p.from_step,
                     "length": p.length, "count": p.count}
                    for p in step.pieces
                ]}  # fmt: skip
            case Insert():
                size = self.size(step.source)
                start = self.size(step.target) - size
                return {"pieces": [
                    {"to": f"{self.base(step.target)} + {start}", "to_step": size,
                     "from": self.base(step.source), "from_step": size, "length": size, "count": 1}
                ]}  # fmt: skip
            case Roll():
                self.helpers.add("roll.c")
                return {"kind": "roll", "size": self.size(step.target), "dropped": step.dropped}
            case _:
                raise AssertionError(f"{task.name} is not cut")

    def _layer(self, task: Task) -> dict[str, Any]:
        layer, step = task.layer, task.step
        assert layer is not None
        fields: dict[str, Any] = {
            "layer": layer,
            "pixel_bytes": layer.channels * layer.in_bytes,
            "out_pixel_bytes": layer.filters * layer.out_bytes,
            "window": (1, 1, 1), "pool": (1, 1, 1, 1), "windows": 1, "pooled": 0, "average": 0,
            "rounded": 0, "pixels": "NULL", "scratch": "NULL", "sums": "NULL", "conv": None,
            "pooling": None, "joining": None,
        }  # fmt: skip
        match step:
            case Convolution():
                return fields | self._convolution(task, step)
            case Pool():
                average = step.kind.averages
                self.helpers.add("pool_mean.c" if average else "pool_max.c")
                return fields | {
                    "pooling": step, "window": (step.window[0], step.dilation[0], step.stride[0]),
                    "function": "nn_pool_mean" if average else "nn_pool_max",
                    "rounded": int(step.kind.rounds),
                }  # fmt: skip
            case Combine():
                self.helpers.add(f"join_{step.join}.c")
                return fields | {"joining": f"nn_{step.join}"}
            case _:
                raise AssertionError(f"{task.name} has no window")

    def _convolution(self, task: Task, step: Convolution) -> dict[str, Any]:
        kernel = self.plan.kernels[step.target]
        self.use(kernel)
        scratch = self.plan.buffers.get((task.index, "scratch"))
        places = {}
        if scratch is not None:
            pooled_bytes = window_bytes(step, kernel)
            own = Spot(scratch.level, scratch.offset + pooled_bytes)
            sums = scratch.offset + scratch_bytes(step, self.plan.kernels)
            places = {
                "pixels": self.at(scratch) if pooled_bytes else "NULL",
                "scratch": self.at(own) if kernel.scratch_bytes(step) else "NULL",
                "sums": self.at(Spot(scratch.level, sums)) if sums_bytes(step) else "NULL",
            }
        pool = step.pool
        pooled = {} if pool is None else {
            "pool": (*pool.window, *pool.stride), "pooled": 1,
            "windows": windows_at_once(step, kernel),
            "average": int(pool.kind.averages),
            "rounded": int(pool.kind.rounds),
        }  # fmt: skip
        self.starts[task.index] = step.start.astype(np.int32)
        window = (step.kernel[0], step.dilation, step.stride[0])
        return {
            "conv": step, "flags": flags_of(step), "function": kernel.function, "window": window,
        } | places | pooled  # fmt: skip

    def _rows(self, task: Task, cut: Rows) -> dict[str, Any]:
        assert task.layer is not None
        sources = sources_of(task.step)
        fields: dict[str, Any] = {
            "kind": "rows",
            "from": [] if task.chained else [self.base(source) for source in sources],
            "rings": [] if task.reads else [
                self._buffer(task, f"input {n}") for n in range(len(sources))
            ],
            "outputs": ["NULL", "NULL"] if task.writes else self._pair(task, "output"),
            "buffers": ["NULL", "NULL"], "offsets": [], "flushes": [], "flush": 0, "groups": 1,
            "stored": "NULL", "mode": f"NN_{cut.weights.name}", "cut": cut,
            "pixels_of": task.pixels, "input_bytes": task.input_bytes, "pitch": task.pitch,
            "slots": task.slots, "ahead": int(task.ahead),
        }  # fmt: skip
        if not isinstance(task.step, Convolution):
            return fields | {"mode": f"NN_{Weights.IN_PLACE.name}"}
        step = task.step
        packed = packed_groups(step, self.plan.kernels[step.target], cut.filters)
        return fields | self._weights(task, packed)

    def _weights(self, task: Task, packed: tuple[Packed, ...]) -> dict[str, Any]:
        number = task.index
        if task.in_place:
            self.weights[number] = packed[0].values
            return {"flush": packed[0].flush}
        sizes = [one.values.nbytes for one in packed]
        self.weights[number] = np.concatenate([one.values.view(np.int8) for one in packed])
        return {
            "buffers": self._pair(task, "weights"), "groups": len(packed),
            "offsets": [0, *np.cumsum(sizes).tolist()], "flushes": [one.flush for one in packed],
            "flush": packed[0].flush, "stored": f"stored_{number}",
        }  # fmt: skip

    def _planes(self, task: Task, cut: Planes) -> dict[str, Any]:
        step = task.step
        assert isinstance(step, Convolution)
        self.weights[task.index] = np.concatenate(packed_planes(step, cut.filters))
        stored = f"weights_{task.index}" if task.in_place else f"stored_{task.index}"
        return {
            "kind": "planes", "from": [self.base(step.source)], "cut": cut, "flush": 0,
            "inputs": self._pair(task, "input"), "mode": "",
            "buffers": ["NULL", "NULL"] if task.in_place else self._pair(task, "weights"),
            "plane_sums": self._buffer(task, "sums"), "stored": stored,
            "planar_in": int(step.source in self.plan.planar), "planar_out": int(task.planar),
        }  # fmt: skip

    def values(self) -> Mapping[str, Any]:
        """Return the values of the template of cnn.c."""
        plan = self.plan
        used = {task["kind"] for task in self.tasks}
        rows = [max(task["window"][0], task["layer"].sources)
                for task in self.tasks if "layer" in task]  # fmt: skip
        in_place = {task.index for task in plan.layers if task.in_place}
        return self.common() | {
            "tasks": self.tasks, "used": used,
            "layered": bool(used & {"rows", "planes", "chain", "channels"}),
            "window_rows": max(rows, default=1), "l1_bytes": plan.used[Level.L1],
            "l2_bytes": plan.used[Level.L2], "l3_bytes": self.l3_bytes(),
            "arrays": [{"number": n, "type": value_kind(values), "in_place": n in in_place}
                       for n, values in self.weights.items()],
        }  # fmt: skip

    def l3_bytes(self) -> int:
        """Return the bytes of images in L3; weights are arrays of their own."""
        stored = [spot.offset for spot in self.plan.stored.values()]
        return min(stored, default=self.plan.used[Level.L3])
