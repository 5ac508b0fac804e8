from __future__ import annotations

from pathlib import Path

import numpy as np

from siesta import Siesta
from siesta.errors import BadInput
from siesta.learner.sources import LabelledSource, learn_sources, predict_sources


def unreadable() -> int:
    raise BadInput("the file is gone")


def source(name: str, given: object, key: int | None = None, stray: bool = False) -> LabelledSource:
    return LabelledSource(Path(name), "a", np.array(given), unreadable if key is None else lambda: key, stray)


def test_outcomes_keep_the_order_and_name_what_is_wrong() -> None:
    learner = Siesta.create(":memory:", features=2)
    sources = [
        source("x[0]", [1, 2], 1),
        source("x[1]", [1, float("inf")], 2),
        source("x[2]", [1, 2]),
        source("x[3]", [2, 1], 3),
        source("notes", [1], 4, stray=True),
    ]
    outcomes = list(learn_sources(learner, sources))
    assert [outcome.status for outcome in outcomes] == ["learned", "unreadable", "unreadable", "learned", "ignored"]
    assert [outcome.sample for outcome in outcomes] == [1, None, None, 2, None]
    assert outcomes[1].reason == "x[1]: element 2 of the vector is inf: give finite numbers"
    assert outcomes[2].reason == "x[2]: the file is gone"
    assert [outcome.status for outcome in learn_sources(learner, sources)][::3] == ["known", "known"]
    answers = list(predict_sources(learner, sources))
    assert [answer.top for answer in answers] == [("a",), (), ("a",), ("a",), ()]
    assert [answer.stray for answer in answers] == [False, False, False, False, True]
