"""Running a program on a core, and measuring instructions, stack and arena."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from ai8xtools.emulator.cpu.core import Core
from ai8xtools.emulator.cpu.counting import Cost, Counter
from ai8xtools.emulator.cpu.elf import Image
from ai8xtools.emulator.cpu.io import Unobserved
from ai8xtools.emulator.cpu.memory_map import CoreMemory
from ai8xtools.emulator.errors import SlotError
from ai8xtools.emulator.plain.compiling import PlainProgram
from ai8xtools.emulator.plain.engine import CopyEngine
from ai8xtools.emulator.plain.sensors import PlainSensor
from ai8xtools.reading.progress import Progress
from ai8xtools.values import frozen

_NETWORKS = ("cnn_stream", "cnn_run", "Inference")
"""Instructions are counted of the first of these that there is, with what it calls."""
_ARENA = "cnn_arena"
_PAINT = 0xA5
_STACK_BYTES = 0x10000
_PASS, _FAIL = "*** PASS ***", "FAIL"


@frozen
class PlainRun:
    """What a program printed and returned, and what it took.

    `passed` is its own verdict, None if it has none. `functions` are what `cnn_stream`, `cnn_run`
    or `Inference` executed in all `inferences`, None if not counted; `has_inferred` is whether one
    of them ran at all. Stack is measured in bytes
    from the top that the whole program used; of the arena, `arena_used` bytes of `arena_bytes` up
    to the last that was written. `flash_bytes` and `ram_bytes` are sizes of the program with its
    console; `code_bytes` those of the functions of the project without main().
    """

    status: int | None
    text: str
    passed: bool | None
    functions: dict[str, Cost] | None
    inferences: int
    has_inferred: bool
    stack_bytes: int
    arena_bytes: int | None
    arena_used: int | None
    flash_bytes: int
    ram_bytes: int
    code_bytes: int


class _Console(Unobserved):
    def __init__(self, show: Callable[[str], None] | None) -> None:
        self.characters: list[str] = []
        self._show = show

    def text(self, character: str) -> None:
        self.characters.append(character)
        if self._show is not None:
            self._show(character)


def run_plain(
    program: PlainProgram,
    *,
    count: bool = False,
    time_limit: float = 60.0,
    show: Callable[[str], None] | None = None,
    memory: CoreMemory | None = None,
    contents: Mapping[str, bytes] | None = None,
    engine: CopyEngine | None = None,
    sensor: PlainSensor | None = None,
    watch: Callable[[Core, Callable[[], int]], None] | None = None,
) -> PlainRun:
    """Run main() from reset; `show` gets what it prints, character by character.

    `contents` take the place of what arrays of the program hold, by their names; the rest of an
    array becomes 0xFF, as erased flash is. `engine` makes the copies of a program that was compiled
    for one, `sensor` delivers recordings to another. `watch` gets the core before it runs, and how
    many characters were printed. Raises EmulatorError: there is no such array,
    or it is too small (E828), the program does not fit (E813), accesses nothing or executes what
    the core does not have (E820, E827), waits for a copy that was not started (E829), does not end
    in time (E822).
    """
    image, memory = program.image, memory or CoreMemory()
    console = _Console(show)
    core = Core(image, engine or sensor, observer=console, memory=memory)
    if engine is not None:
        engine.attach(core.read_memory, core.write_memory)
    if sensor is not None:
        sensor.attach(core.write_memory, core.stop)
    if watch is not None:
        watch(core, lambda: len(console.characters))
    networks = [called for own in _NETWORKS for _, called in image.functions if _is(called, own)]
    within = networks[0] if count and networks else None
    counter = Counter(core, within)
    top = memory.sram_base + memory.sram_bytes
    free = min(_STACK_BYTES, memory.sram_bytes - memory.sram_use(image))
    core.write_memory(top - free, bytes([_PAINT]) * free)
    arena = _object(image, _ARENA)
    if arena is not None:
        core.write_memory(arena[0], bytes([_PAINT]) * arena[1])
    for name, data in (contents or {}).items():
        _replace(core, image, name, data)
    status = _run(core, console, time_limit)
    text = "".join(console.characters)
    return PlainRun(
        status=status,
        text=text,
        passed=_verdict(text, status),
        functions=counter.by_function() if count else None,
        inferences=counter.entries,
        has_inferred=not counter.by_function().keys().isdisjoint(networks),
        stack_bytes=len(core.read_memory(top - free, free).lstrip(bytes([_PAINT]))),
        arena_bytes=arena[1] if arena else None,
        arena_used=len(core.read_memory(*arena).rstrip(bytes([_PAINT]))) if arena else None,
        flash_bytes=memory.flash_use(image),
        ram_bytes=memory.sram_use(image),
        code_bytes=sum(
            size for name, size in image.function_bytes.items() if name in program.own - {"main"}
        ),
    )


def _run(core: Core, console: _Console, time_limit: float) -> int | None:
    """Run main() and show for how long, of the time that it may take, between lines of output."""
    line, begin = Progress("Emulated program, at most", time_limit), time.process_time()

    def show() -> None:
        if not console.characters or console.characters[-1] == "\n":
            line.reach(time.process_time() - begin)

    core.on_tick = show
    try:
        return core.run(time_limit)
    finally:
        line.close()


def _replace(core: Core, image: Image, name: str, data: bytes) -> None:
    """Put other bytes into an array."""
    place = _object(image, name)
    if place is None:
        raise SlotError("E828", f"the program has no array {name}", remedy="Only firmware of "
                            "ai8xize.py --container has one.")  # fmt: skip
    address, size = place
    if len(data) > size:
        raise SlotError("E828", f"{len(data)} bytes, {name} has {size}", remedy="Make the "
                            "firmware with a larger --slot.")  # fmt: skip
    core.write_memory(address, data.ljust(size, b"\xff"))


def _verdict(text: str, status: int | None) -> bool | None:
    """Return the verdict that a program prints; one that fails in its status has not passed."""
    if _PASS in text:
        return status == 0
    return False if _FAIL in text or status else None


def _object(image: Image, name: str) -> tuple[int, int] | None:
    """Address and bytes of an array."""
    return next(((a, size) for a, size, called in image.objects if _is(called, name)), None)


def _is(name: str, own: str) -> bool:
    """Whether a name is one of ours, with the prefix of a library or without."""
    return name == own or name.endswith(f"_{own}")
