"""What an event is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import uuid4

__all__ = ["Event", "EventName"]

EventName = Literal["learned", "predicted", "slept", "drift"]


@dataclass(frozen=True)
class Event:
    """Something that happened to a learner.

    Attributes:
        name: What happened.
        learner: Name of the learner's folder.
        data: JSON values about it.
        id: A text that no other event has, so that a receiver recognises what it gets twice.
        time: When it happened.

    Example:
        >>> Event("learned", "birds.siesta", {"ids": [17]}).values()["data"]
        {'ids': [17]}
    """

    name: EventName
    learner: str
    data: Mapping[str, Any]
    id: str = field(default_factory=lambda: f"evt_{uuid4().hex}")
    time: datetime = field(default_factory=lambda: datetime.now(UTC))

    def values(self) -> dict[str, Any]:
        """Return the event as JSON values."""
        return {
            "event": self.name,
            "id": self.id,
            "time": self.time.isoformat(timespec="milliseconds"),
            "learner": self.learner,
            "data": dict(self.data),
        }

    def encoded(self) -> bytes:
        """Return the event as JSON."""
        return json.dumps(self.values(), ensure_ascii=False, allow_nan=False).encode()
