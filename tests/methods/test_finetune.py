"""Fine-tuning learns the newest class and forgets the older ones."""

from __future__ import annotations

import pytest

from siesta.methods.finetune import Finetune
from siesta.methods.settings import OnlineSettings
from tests.methods.conftest import Template
from tests.methods.steps import record_steps


def test_a_step_is_the_new_sample_alone_and_nothing_is_stored(
    templates: dict[str, Template], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = record_steps(monkeypatch)
    method = Finetune(templates["opq"].folder(), OnlineSettings(lr=0.01), 0)
    method.learn_many(*templates["opq"].samples([0, 1, 0]))
    assert [(step.rows, step.rates[0], len(step.latents)) for step in steps] == [
        ([0], 0.01, 1), ([1], 0.01, 1), ([0], 0.01, 1)
    ]  # fmt: skip
    resources = method.resources()
    assert resources.updates == 3 and resources.bytes["codes"] == 0 and len(method.workspace.store) == 0


def test_old_classes_are_forgotten(templates: dict[str, Template]) -> None:
    template = templates["opq"]
    method = Finetune(template.folder(), OnlineSettings(lr=0.002), 0)
    queries, labels = template.samples([0, 1, 2] * 6, 5)

    def right(label: str) -> list[bool]:
        answers = method.predict_many(queries)
        return [answer[0] == label for answer, truth in zip(answers, labels, strict=True) if truth == label]

    for number in range(3):
        method.learn_many(*template.samples([number] * 10, number))
        assert all(right(f"class {number}"))
    assert not any(right("class 0")) and not any(right("class 1"))
