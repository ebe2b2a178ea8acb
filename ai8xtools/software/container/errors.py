"""The error for containers."""

from __future__ import annotations

from ai8xtools.diagnostics.errors import InputError

_REMEDIES = {
    "version": "Use a newer version of this tool.",
    "unsupported": "Only the layers listed in docs/container.md can be computed.",
    "memory": "Only tensors and arenas that a computer of 32 bits addresses can be computed.",
    "key": "Name the 32-byte key file with which it was encrypted.",
    "tag": "Name the key with which it was encrypted, or copy the file again.",
    "vectors": "With an encrypted container: check the key. Otherwise write it again.",
}
_REMEDY = "Write it again, or copy it again: the file is damaged or was not made by this tool."


class ContainerError(InputError):
    """A container is refused. `name` is the check that failed, as the C reader calls it."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__("E922", f"{name}: {reason}", remedy=_REMEDIES.get(name, _REMEDY))
        self.name = name
