"""The JSON of an event."""

from __future__ import annotations

import json

from siesta.service.events import Event


def test_an_event_has_an_id_of_its_own_and_a_time_with_its_zone() -> None:
    first, second = (Event("learned", "vögel.siesta", {"ids": [1]}) for _ in range(2))
    values = json.loads(first.encoded())
    assert (values["event"], values["learner"], values["data"]) == ("learned", "vögel.siesta", {"ids": [1]})
    assert values["id"] == first.id != second.id
    assert values["time"].endswith("+00:00")
