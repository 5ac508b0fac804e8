"""Fine-tuning: the newest class is learned, the older ones are lost."""

from __future__ import annotations

import pytest

from siesta.methods import Finetune
from siesta.methods.settings import OnlineSettings
from tests.methods.conftest import Start
from tests.methods.steps import record


def test_a_step_is_the_new_sample_alone_and_nothing_is_kept(
    starts: dict[str, Start], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = record(monkeypatch)
    method = Finetune(starts["opq"].folder(), OnlineSettings(rate=0.01), 0)
    method.learn_many(*starts["opq"].lesson([0, 1, 0]))
    assert [(step.rows, step.rates[0], len(step.latents)) for step in steps] == [
        ([0], 0.01, 1), ([1], 0.01, 1), ([0], 0.01, 1)
    ]  # fmt: skip
    resources = method.resources()
    assert resources.updates == 3 and resources.bytes["codes"] == 0 and len(method._home.store) == 0


def test_it_forgets(starts: dict[str, Start]) -> None:
    some = starts["opq"]
    method = Finetune(some.folder(), OnlineSettings(rate=0.002), 0)
    asked, labels = some.lesson([0, 1, 2] * 6, 5)

    def right(label: str) -> list[bool]:
        answers = method.predict_many(asked)
        return [answer[0] == label for answer, truth in zip(answers, labels, strict=True) if truth == label]

    for number in range(3):
        method.learn_many(*some.lesson([number] * 10, number))
        assert all(right(f"class {number}"))
    assert not any(right("class 0")) and not any(right("class 1"))
