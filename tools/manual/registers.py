"""The register map, from the declarations of `device/`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from device import CHIPS, Chip
from device.chip import (
    DEFAULT_APB_BASE,
    FAST_FIFO_CONTROL,
    FAST_FIFO_DATA,
    FAST_FIFO_INTERRUPT,
    FIFO_DATA,
    FIFOS,
    STREAM_REGISTERS,
)
from device.fields import Field, Register
from device.registers import FAST_FIFO_REGISTERS, SHARED_REGISTERS, SNOOP_CONDITION
from device.snoop_registers import SNOOP_ABOUT
from tools.manual.markdown import by_chip, hexadecimal, table, word

_NOTHING = "–"


def _bits(field: Field | None) -> str:
    if field is None:
        return _NOTHING
    high = field.low + field.width - 1
    return str(high) if field.width == 1 else f"{high}:{field.low}"


def described_fields(register: Register) -> tuple[Field, ...]:
    """Return the fields without the one that is the whole word, if there are others."""
    parts = tuple(field for field in register.fields if field.width < 32)
    return parts or register.fields


def _register_text(name: str, versions: Sequence[Register | None], numbers: str) -> Iterator[str]:
    """Yield a heading, what the register is for, and its fields on each chip."""
    registers = [version for version in versions if version is not None]
    names = list(dict.fromkeys(f.name for version in registers for f in described_fields(version)))
    yield f"### {name}"
    yield ""
    yield f"{registers[-1].meaning}. {numbers}"
    yield ""
    yield registers[-1].about
    yield ""
    rows = []
    for field_name in names:
        fields = [version and version.by_name.get(field_name) for version in versions]
        for field in dict.fromkeys((f.meaning, f.rule) for f in fields if f):
            here = [f if f and (f.meaning, f.rule) == field else None for f in fields]
            rows.append([*map(_bits, here), f"`{field_name}`", *field])
    yield table([*(chip.name for chip in CHIPS), "field", "meaning", "value"], rows)
    yield ""


def _described(of: Callable[[Chip], Mapping[str, Register]], names: Iterable[str]) -> str:
    lines: list[str] = []
    for name in names:
        versions = [of(chip).get(name) for chip in CHIPS]
        numbers = "; ".join(
            f"{chip.name}: {f'number {_number(version)}' if version else 'none'}"
            for chip, version in zip(CHIPS, versions, strict=True)
        )
        lines += _register_text(name, versions, f"{numbers}.")
    return "\n".join(lines).rstrip()


def _number(register: Register) -> str:
    return str(register.number) if register.number < 1024 else hexadecimal(register.number)


def _names(of: Callable[[Chip], Mapping[str, Register]]) -> list[str]:
    """Return the names of both chips, in the order of the chip that has more."""
    most = max(CHIPS, key=lambda chip: len(of(chip)))
    rest = (name for chip in CHIPS for name in of(chip))
    return list(dict.fromkeys([*of(most), *rest]))


def _controls(chip: Chip) -> Mapping[str, Register]:
    return {n: r for n, r in chip.control_registers.items() if not n.startswith("SNP")}


def _layers(chip: Chip) -> Mapping[str, Register]:
    return chip.layer_registers


def control_registers() -> str:
    """Return all control registers with their fields."""
    return _described(_controls, _names(_controls))


def layer_registers() -> str:
    """Return all layer registers with their fields."""
    return _described(_layers, _names(_layers))


def control_register_list() -> str:
    """Return numbers and addresses of the control registers."""
    return _register_list(_controls, lambda chip, name: chip.control_address(0, name), "group 0")


def layer_register_list() -> str:
    """Return numbers and addresses of the layer registers."""
    return _register_list(
        _layers, lambda chip, name: chip.layer_address(0, 0, name), "group 0, layer 0"
    )


def _register_list(
    of: Callable[[Chip], Mapping[str, Register]], address: Callable[[Chip, str], int], where: str
) -> str:
    rows = []
    for name in _names(of):
        cells: list[object] = [f"[{name}](#{name.lower()})"]
        for chip in CHIPS:
            register = of(chip).get(name)
            cells += (
                [_number(register), word(DEFAULT_APB_BASE + address(chip, name))]
                if register
                else [_NOTHING, _NOTHING]
            )
        titles = [of(chip)[name].meaning for chip in CHIPS if name in of(chip)]
        rows.append([*cells, titles[-1]])
    header = ["register"]
    for chip in CHIPS:
        header += [f"{chip.name} number", f"address in {where}"]
    return table([*header, "title"], rows)


def layer_register_addresses() -> str:
    """Return the address of a layer register as a formula for each chip."""

    def formula(chip: Chip, stride: int) -> str:
        return (
            f"`group(g) + {hexadecimal(chip.layer_registers_offset)} + number * "
            f"{hexadecimal(chip.layer_register_stride)} + layer * {hexadecimal(stride)}`"
        )

    return by_chip(
        {
            "registers": lambda c: formula(c, c.layer_stride),
            f"{', '.join(STREAM_REGISTERS)}": lambda c: formula(c, c.stream_layer_stride),
        }
    )


def other_registers() -> str:
    """Return addresses and fields of the registers that belong to no group."""
    places = {
        f"{name} (fast FIFO)": (FAST_FIFO_CONTROL + 4 * register.number, register)
        for name, register in FAST_FIFO_REGISTERS.items()
    }
    for name, register in SHARED_REGISTERS.items():
        places[name] = (DEFAULT_APB_BASE + 4 * register.number, register)
    rows = [
        [word(address), name, _bits(field), f"`{field.name}`", field.meaning, field.rule]
        for name, (address, register) in sorted(places.items(), key=lambda item: item[1][0])
        for field in register.fields
    ]
    rows += [
        [word(DEFAULT_APB_BASE + FIFO_DATA + 4 * i), f"FIFO {i}", "31:0", "", "data", "push a word"]
        for i in range(FIFOS)
    ]
    fast = [(FAST_FIFO_INTERRUPT, "interrupt enable", "0"), (FAST_FIFO_DATA, "data", "push a word")]
    rows += [[word(a), "fast FIFO", "31:0", "", text, value] for a, text, value in fast]
    header = ["address on both chips", "register", "bits", "field", "meaning", "value"]
    return table(header, sorted(rows, key=lambda row: str(row[0])))


def snoop_registers() -> str:
    """Return the registers of both units of conditional execution."""
    chip = next(chip for chip in CHIPS if any(n.startswith("SNP") for n in chip.control_registers))
    rows = []
    for name, about in SNOOP_ABOUT.items():
        units = [
            f"{hexadecimal(chip.control_registers[f'SNP{unit}_{name}'].number)}, "
            f"{word(DEFAULT_APB_BASE + chip.control_address(0, f'SNP{unit}_{name}'))}"
            for unit in (1, 2)
        ]
        rows.append([name, *units, about])
    return table(["register", "SNP1, number and address", "SNP2, number and address", ""], rows)


def snoop_condition() -> str:
    """Return the bits of a condition."""
    rows = ([_bits(field), f"`{field.name}`", field.meaning] for field in SNOOP_CONDITION.fields)
    return table(["bits of C1", "field", "meaning"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "control-registers": control_registers,
    "layer-registers": layer_registers,
    "control-register-list": control_register_list,
    "layer-register-list": layer_register_list,
    "layer-register-addresses": layer_register_addresses,
    "other-registers": other_registers,
    "snoop-registers": snoop_registers,
    "snoop-condition": snoop_condition,
}
