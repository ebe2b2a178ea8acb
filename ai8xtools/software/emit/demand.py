"""Plans in one memory: a function for each step, rows made when a step asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np

from ai8xtools.software.emit import expressions
from ai8xtools.software.emit.code import RUNTIME, Code, flags_of, value_kind
from ai8xtools.software.graph import (
    Combine,
    Convolution,
    Copy,
    Elements,
    Insert,
    Piece,
    Pool,
    Roll,
    Step,
    Windows,
    sources_of,
)
from ai8xtools.software.kernels.call import BIAS, BUFFER, DATA, RESULT, WEIGHTS, KernelCall
from ai8xtools.software.plan.buffers import SCRATCH, SUMS
from ai8xtools.software.plan.layers import window_bytes, windows_at_once
from ai8xtools.software.plan.plan import DELIVERED, Plan, Slide, Sliding
from ai8xtools.software.plan.sliding import FIRST, LAST
from ai8xtools.software.plan.streaming import read_size, rows_of, streams
from ai8xtools.software.plan.task import Task

WIDE_TYPE, BUFFER_TYPE = "q31_t", "q15_t"
"""Names in a library of 32-bit results and of scratch memory."""


class Demand(Code):
    """Describes which function makes each step of a plan in one memory, or its rows."""

    template = "cnn.c.j2"
    caller = ("cnn_input", "cnn_output")

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._rows_on_demand = plan.scheme is not None and plan.scheme.by_rows
        self.images: dict[tuple[int, int, int], int] = {}
        self.counters = {self.graph.input: 0} if plan.takes_rows else {}
        slides = () if plan.sliding is None else plan.sliding.slides
        self._slides = {slide.tensor: number for number, slide in enumerate(slides)}
        self._slid = False
        self.steps = [
            self._step(number, self.graph.steps[number], task)
            for task in plan.tasks
            for number in task.steps
        ]

    @property
    def title(self) -> str:
        """The plan in a line."""
        plan = self.plan
        return f"Plan: {plan.name}, {plan.arena_bytes:,} bytes of RAM, kernels for {plan.core.name}"

    @property
    def table_bytes(self) -> int:
        """Bytes of tables, without weights."""
        return 48 * len(self.weights) + 12 * len(self.images)

    def files(self) -> Mapping[str, str]:
        """Return what finds rows of windows that slide."""
        names = ("slide.h", "slide.c") if self._slides else ()
        return {f"nn_{name}": (RUNTIME / name).read_text(encoding="utf-8") for name in names}

    def base(self, tensor: int) -> str:
        """Return where a tensor begins, as C writes it; nothing in a step whose rows slide."""
        return "" if self._slid else super().base(tensor)

    def image(self, tensor: int, rows: int) -> int:
        """Return the number of the image of a tensor whose rows are counted so."""
        if self._slid:
            return self._slides[tensor]
        size = self.size(tensor)
        whole = self.graph.tensors[tensor].rows
        ring = self.plan.rings.get(tensor, whole)
        ring = ring * rows // whole
        return self.images.setdefault((size // rows, rows, ring), len(self.images))

    def by_rows(self, step: Step) -> bool:
        """Whether a step makes its result row by row."""
        if step.target in self.plan.calls:
            return False
        if step.target in self._slides:
            return True
        if isinstance(step, Copy):
            return self._rows_on_demand and streams(step, self.graph)
        return not isinstance(step, Insert | Roll)

    def _needs(self, step: Step, task: Task) -> list[dict[str, int]]:
        """Return the tensors whose rows a step asks for, and how their rows are counted anew.

        For `over` rows of the step there are `times` of the tensor.
        """
        if not self._rows_on_demand or not streams(step, self.graph, recounted=True):
            return []
        inside = {one.target for one in self.plan.steps_of(task)}
        if self.plan.takes_rows:
            inside.add(self.graph.input)
        return [self._need(step, source) for source in dict.fromkeys(sources_of(step))
                if source in inside]  # fmt: skip

    def _need(self, step: Step, source: int) -> dict[str, int]:
        one = self.graph.tensors[source]
        read = read_size(step, one)[0]
        return {"tensor": source, "times": one.rows // read or 1, "over": read // one.rows or 1}

    def _step(self, number: int, step: Step, task: Task) -> dict[str, Any]:
        """Return what the template needs of a step."""
        target = step.target
        self._slid = target in self._slides
        self.counters.setdefault(target, len(self.counters))
        common = {
            "number": number,
            "target": target,
            "counter": self.counters[target],
            "title": f"{step.name}: {type(step).__name__.lower()}",
            "out_base": self.base(target),
            "needs": self._needs(step, task),
        }
        if self.by_rows(step):
            common["out_image"] = self.image(target, rows_of(step, self.graph))
        if (call := self.plan.calls.get(target)) is not None:
            return common | self._call(number, step, call, task)
        match step:
            case Convolution():
                return common | self._convolution(number, step, task)
            case Pool():
                return common | self._pool(step)
            case Combine():
                return common | self._combine(step)
            case Elements():
                return common | self._elements(number, step)
            case Windows():
                return common | self._windows(number, step)
            case Copy():
                return common | self._copy(step)
            case Insert():
                return common | self._insert(step)
            case Roll():
                self.helpers.add("roll.c")
                return common | {
                    "kind": "roll", "pieces": [], "size": self.size(target),
                    "dropped": step.dropped,
                }  # fmt: skip
            case _:
                assert_never(step)

    def _scratch(self, task: Task) -> int:
        """Return the place of the memory that steps of a task work in."""
        spot = self.plan.buffers.get((task.index, SCRATCH))
        return 0 if spot is None else spot.offset

    def _call(self, number: int, step: Step, call: KernelCall, task: Task) -> dict[str, Any]:
        """Return the description of a step that a library computes."""
        if call.weights is not None and call.bias is not None:
            self.weights[number], self.starts[number] = call.weights, call.bias
        buffer = self._scratch(task)
        copy = f"(cnn_arena + {buffer + call.scratch_bytes - -(-call.copied // 4) * 4})"
        source = self.base(sources_of(step)[0])
        words = {
            DATA: copy if call.copied else source,
            RESULT: f"({WIDE_TYPE} *)(void *){self.base(step.target)}"
            if call.wide
            else self.base(step.target),
            WEIGHTS: f"weights_{number}",
            BIAS: f"bias_{number}",
            BUFFER: f"({BUFFER_TYPE} *)(void *)(cnn_arena + {buffer})",
        }
        return {
            "kind": "call",
            "function": call.function,
            "arguments": [words.get(str(one), one) for one in call.arguments],
            "base": source,
            "spared": copy,
            "copied": call.copied,
            "relu": call.relu,
            "size": self.size(step.target),
            "status": call.status,
        }

    def _convolution(self, number: int, step: Convolution, task: Task) -> dict[str, Any]:
        kernel = self.plan.kernels[step.target]
        packed, start = kernel.pack(step), kernel.start(step).astype(np.int32)
        same = (n for n, values in self.weights.items() if np.array_equal(values, packed.values)
                and np.array_equal(self.starts[n], start))  # fmt: skip
        if (shared := next(same, None)) is None:
            self.weights[number], self.starts[number] = packed.values, start
        else:
            self.shared[number] = shared
        self.use(kernel)
        scratch = self._scratch(task)
        fields = {
            "kind": "convolution",
            "data": self.shared.get(number, number),
            "function": kernel.function,
            "channels": step.channels,
            "filters": step.filters,
            "width": step.in_size[1],
            "height": step.in_size[0],
            "columns": step.out_size[1],
            "groups": step.groups,
            "flush": packed.flush,
            "pad_rows": step.pad[0],
            "pad_columns": step.pad[1],
            "kernel_rows": step.kernel[0],
            "kernel_columns": step.kernel[1],
            "reach": (step.kernel[0] - 1) * step.dilation,
            "dilation": step.dilation,
            "stride_row": step.stride[0],
            "stride_column": step.stride[1],
            "spread_row": step.spread[0],
            "spread_column": step.spread[1],
            "right": step.right,
            "low": step.low,
            "flags": flags_of(step),
            "image": self.image(step.source, step.in_size[0]),
            "base": self.base(step.source),
            "pooled": step.pool is not None,
            "scratch": f"cnn_arena + {scratch + window_bytes(step, kernel)}"
            if kernel.scratch_bytes(step)
            else "NULL",
        }
        return (
            fields if step.pool is None else fields | self._pooled(number, step, step.pool, scratch)
        )

    def _pooled(self, number: int, step: Convolution, pool: Pool, scratch: int) -> dict[str, Any]:
        """Return the description of pooling in a convolution."""
        average = pool.kind.averages
        self.helpers.add("keep_sum.c" if average else "keep_max.c")
        return {
            "pool_rows": pool.window[0],
            "pool_columns": pool.window[1],
            "stride_rows": pool.stride[0],
            "stride_columns": pool.stride[1],
            "pool_width": pool.out_size[1],
            "windows": windows_at_once(step, self.plan.kernels[step.target]),
            "pixels": f"cnn_arena + {scratch}",
            "sums": self.at(self.plan.buffers[number, SUMS]) if average else "",
            "rounded": int(pool.kind.rounds),
        }

    def _pool(self, step: Pool) -> dict[str, Any]:
        average = step.kind.averages
        self.helpers.add("pool_mean.c" if average else "pool_max.c")
        return {
            "kind": "pool",
            "function": "nn_pool_mean" if average else "nn_pool_max",
            "channels": step.channels,
            "width": step.out_size[1],
            "rows": step.window[0],
            "columns": step.window[1],
            "stride_rows": step.stride[0],
            "stride_columns": step.stride[1],
            "dilation_rows": step.dilation[0],
            "dilation_columns": step.dilation[1],
            "rounded": int(step.kind.rounds),
            "reach": (step.window[0] - 1) * step.dilation[0],
            "image": self.image(step.source, step.in_size[0]),
            "base": self.base(step.source),
        }

    def _combine(self, step: Combine) -> dict[str, Any]:
        self.helpers.add(f"join_{step.join}.c")
        return {
            "kind": "combine",
            "function": f"nn_{step.join}",
            "row_bytes": step.size[1] * step.channels,
            "operands": [
                {"base": self.base(s), "image": self.image(s, step.size[0])} for s in step.sources
            ],
        }

    def _elements(self, number: int, step: Elements) -> dict[str, Any]:
        operands = [
            {"base": self.base(source), "wide": self.graph.tensors[source].bytes_per_value == 4,
             "image": self.image(source, step.size[0]) if shape[0] > 1 else None}
            for source, shape in zip(step.sources, step.shapes, strict=True)
        ]  # fmt: skip
        return {
            "kind": "elements", "operands": operands,
            "wide": self.graph.tensors[step.target].bytes_per_value == 4,
            **expressions.elements(step, number, self.tables),
        }  # fmt: skip

    def _windows(self, number: int, step: Windows) -> dict[str, Any]:
        return {
            "kind": "windows", "base": self.base(step.source),
            "image": self.image(step.source, step.in_size[0]),
            "wide_in": self.graph.tensors[step.source].bytes_per_value == 4,
            "wide": self.graph.tensors[step.target].bytes_per_value == 4,
            "reach": (step.window[0] - 1) * step.dilation[0],
            **expressions.windows(step, number, self.tables),
        }  # fmt: skip

    def _copy(self, step: Copy) -> dict[str, Any]:
        self.helpers.add("copy.c")
        by_rows = self.by_rows(step)
        rows = self.graph.tensors[step.target].rows
        pieces = [self._piece(piece, rows if by_rows else 1) for piece in step.pieces]
        filled = {} if step.fill is None else {"fill": step.fill, "size": self.size(step.target)}
        return {"kind": "copy rows" if by_rows else "copy", "pieces": pieces} | filled

    def _piece(self, piece: Piece, rows: int) -> dict[str, Any]:
        """Return a piece of a copy; `rows` in which it is made."""
        return {
            "base": self.base(piece.source),
            "image": self.image(piece.source, rows) if rows > 1 else None,
            "from_start": piece.from_start,
            "from_step": piece.from_step,
            "to_start": piece.to_start,
            "to_step": piece.to_step,
            "length": piece.length,
            "count": piece.count // rows,
        }

    def _insert(self, step: Insert) -> dict[str, Any]:
        self.helpers.add("copy.c")
        size = self.graph.tensors[step.source].size_bytes
        start = self.graph.tensors[step.target].size_bytes - size
        piece = Piece(step.source, 0, 0, start, 0, size, 1)
        return {"kind": "insert", "pieces": [self._piece(piece, 1)]}

    def calls(self) -> list[str]:
        """Return the calls that run all tasks."""
        described = {step["number"]: step for step in self.steps}
        calls = []
        for task in self.plan.tasks:
            for index in task.steps:
                step = described[index]
                if step["target"] in self._slides:
                    continue
                if not self.by_rows(self.graph.steps[index]):
                    calls.append(f"run_{index}()")
                elif step["target"] in task.roots:
                    rows = rows_of(self.graph.steps[index], self.graph)
                    calls.append(f"need_{step['target']}({rows})")
        return calls

    def _sliding(self, sliding: Sliding) -> dict[str, Any]:
        """Return what the template needs of windows that slide."""
        numbers = 2 * len(sliding.slides)
        return {"beats": sliding.beats, "order": sliding.order, "bits": 8 if numbers < 256 else 16,
                "slides": [
            self._slide(number, slide, sliding.beats) for number, slide in enumerate(sliding.slides)
        ]}  # fmt: skip

    def _slide(self, number: int, slide: Slide, beats: int) -> dict[str, Any]:
        tensor = self.graph.tensors[slide.tensor]
        ring = self.base(slide.tensor)
        spots = {name: self.plan.buffers.get((slide.tensor, name)) for name in (FIRST, LAST)}
        last = f"({ring} + {slide.end * tensor.row_bytes})" if slide.whole else self.at(spots[LAST])
        first = ring if slide.first_stays(beats) else self.at(spots[FIRST])
        return {
            "number": number, "ring_at": ring, "first_at": first, "last_at": last,
            "row_bytes": tensor.row_bytes, "rows": tensor.rows, "ring": slide.ring,
            "modulo": slide.ring if slide.whole else 65535, "windows": max(slide.windows, 1),
            "first": slide.first, "end": slide.end, "hop": slide.new * beats, "new": slide.new,
            "copied": slide.whole and first != ring, "beat": beats - slide.ahead % beats,
            "ahead": slide.ahead // beats,
        }  # fmt: skip

    def values(self) -> Mapping[str, Any]:
        """Return the values of the template of cnn.c."""
        plan, graph = self.plan, self.graph
        self._slid = False
        source = graph.tensors[graph.input]
        delivered = plan.places.get(DELIVERED)
        image = self.image(graph.input, source.rows) if plan.takes_rows else None
        return self.common() | {
            "arena_bytes": plan.arena_bytes,
            "arrays": [
                {
                    "number": number,
                    "type": value_kind(values),
                    "start": value_kind(self.starts[number]),
                }
                for number, values in self.weights.items()
            ],
            "tables": [
                {"name": name, "type": value_kind(values)} for name, values in self.tables.items()
            ],
            "roots": any(step.get("roots") for step in self.steps),
            "divides": {step["value"] for step in self.steps if step.get("divides")},
            "calls": self.calls(),
            "counters": max(len(self.counters), 1),
            "delivered": None if delivered is None else delivered.offset,
            "demands_rows": plan.takes_rows,
            "images": [
                {"row_bytes": size, "rows": rows, "ring": ring} for size, rows, ring in self.images
            ],
            "input": graph.input,
            "input_base": self.base(graph.input),
            "input_image": image,
            "input_outside": not plan.takes_rows and self._reads_input() and plan.sliding is None,
            "input_row_bytes": source.row_bytes,
            "output_outside": any(not o.copied for o in plan.outputs),
            "sliding": None if plan.sliding is None else self._sliding(plan.sliding),
            "steps": self.steps,
        }

    def _reads_input(self) -> bool:
        read = {source for step in self.graph.steps for source in sources_of(step)}
        return self.graph.input in read | {o.tensor for o in self.plan.outputs if o.copied}
