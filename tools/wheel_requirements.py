"""What the wheel requires: requirements.txt, which is complete for training and loading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class WheelRequirements(MetadataHookInterface):
    """Hook of hatchling, so that the requirements stand in one file."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `dependencies`."""
        lines = Path(self.root, "requirements.txt").read_text(encoding="utf-8").splitlines()
        metadata["dependencies"] = [line for line in lines if line and not line.startswith("#")]
