"""When test samples were made, and every time they were read: one JSON line an event, never rewritten."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Ledger:
    """The book of a scale's test sets, kept beside its records and committed with them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, event: str, **facts: Any) -> None:
        """Add a line in one write, so that processes side by side do not mix theirs."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"event": event, "time": datetime.now(UTC).isoformat(timespec="seconds"), **facts})
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, (line + "\n").encode())
        finally:
            os.close(handle)

    def read(self) -> list[dict[str, Any]]:
        """All lines, in the order of writing."""
        if not self.path.is_file():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines() if line]
