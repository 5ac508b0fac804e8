"""Learning and predicting vectors over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from siesta import Siesta
from siesta.errors import BadInput
from siesta.service.client import Client
from tests.service.conftest import Send, StartServer
from tests.service.server_process import make_image

ROWS = [[1.0, 0.1, 0.0], [0.0, 1.0, 0.1], [0.1, 0.0, 1.0]]


@pytest.fixture
def vectors_path(tmp_path: Path) -> Path:
    Siesta.create(tmp_path / "v.siesta", features=3, memory="1MB").close()
    return tmp_path / "v.siesta"


class TestVectorLearner:
    @pytest.fixture
    def learner_path(self, vectors_path: Path) -> Path:
        return vectors_path

    def test_vectors_are_learned_and_predicted(self, send: Send) -> None:
        asked = {"vectors": ROWS[:1]}
        assert send("POST", "/v1/vectors/predict", json=asked).status_code == 409
        learned = send("POST", "/v1/vectors/learn", json={"vectors": ROWS, "labels": ["a", "b", "c"]})
        assert (learned.status_code, learned.json()["ids"]) == (200, [1, 2, 3])
        assert send("POST", "/v1/vectors/learn", json={"vectors": ROWS[:2], "labels": ["d"]}).json()["ids"] == [4, 5]
        answer = send("POST", "/v1/vectors/predict", json={**asked, "top": 1}).json()["predictions"][0]
        assert answer["label"] in ("a", "d") and len(answer["top"]) == 1
        backbone = send("GET", "/v1/info").json()["backbone"]
        assert (backbone["features"], backbone["image_size"]) == (3, None)

    def test_a_rejected_label_falls_to_zero(self, send: Send) -> None:
        send("POST", "/v1/vectors/learn", json={"vectors": ROWS, "labels": ["a", "b", "c"]})
        rejected = send("POST", "/v1/vectors/reject", json={"vectors": ROWS[:1], "labels": ["a", "b"]})
        assert (rejected.status_code, rejected.json()) == (200, {"ids": [4, 5]})
        answer = send("POST", "/v1/vectors/predict", json={"vectors": ROWS[:1]}).json()["predictions"][0]
        assert {each["label"]: each["score"] for each in answer["top"]}["a"] == 0.0
        refused = send("POST", "/v1/vectors/reject", json={"vectors": ROWS, "labels": ["a", "b"]})
        assert (refused.status_code, "3 vectors, 2 labels" in refused.json()["detail"]) == (422, True)

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            (
                '{"vectors": [[1, 2]], "labels": ["a"]}',
                "vector 1: this learner takes vectors of 3 numbers, and this one",
            ),
            ('{"vectors": [[1, 2, 3], [1, NaN, 3]], "labels": ["a"]}', "vector 2: element 2 of the vector is nan"),
            ('{"vectors": [[1, 2, 1e39]], "labels": ["a"]}', "vector 1: element 3 of the vector is 1e+39"),
            ('{"vectors": [[1, "2", 3]], "labels": ["a"]}', "vectors"),
            ('{"vectors": [[[1], 2, 3]], "labels": ["a"]}', "vectors"),
            ('{"vectors": [], "labels": ["a"]}', "vectors"),
            ('{"vectors": [[1, 2, 3]], "labels": ["a", "b"]}', "1 vectors, 2 labels"),
            ('{"vectors": [[1, 2, 3]]}', "labels"),
        ],
    )
    def test_what_cannot_be_used_is_refused_and_nothing_is_stored(self, send: Send, body: str, words: str) -> None:
        response = send("POST", "/v1/vectors/learn", content=body, headers={"content-type": "application/json"})
        assert response.status_code == 422 and words in response.json()["detail"], response.text
        assert send("GET", "/v1/info").json()["samples"]["stored"] == 0

    def test_images_are_refused_and_told_where_vectors_go(self, send: Send) -> None:
        files = [("image", ("a.png", make_image("red")))]
        response = send("POST", "/v1/learn", files=files, data={"label": "red"})
        assert response.status_code == 409 and "takes vectors, not images: send them to" in response.json()["detail"]

    @settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.recursive(st.none() | st.floats() | st.text(max_size=2), lambda inner: st.lists(inner, max_size=3)))
    def test_any_json_is_answered_without_a_server_error(self, send: Send, vectors: Any) -> None:
        body = json.dumps({"vectors": vectors, "labels": ["a"]})
        response = send("POST", "/v1/vectors/learn", content=body, headers={"content-type": "application/json"})
        assert response.status_code in (200, 422), response.text


def test_a_learner_of_images_refuses_vectors(send: Send) -> None:
    response = send("POST", "/v1/vectors/predict", json={"vectors": ROWS})
    assert response.status_code == 409 and "takes images, not vectors" in response.json()["detail"]


def test_the_client_sends_arrays(start_server: StartServer, vectors_path: Path) -> None:
    with start_server(path=vectors_path).client() as client:
        assert client.learn_vectors(np.array(ROWS, np.float32), ["a", "b", "c"]) == [1, 2, 3]
        assert client.predict_vectors(ROWS, top=1)[1].label == "b"
        assert_refused_by_the_client(client)


def assert_refused_by_the_client(client: Client) -> None:
    unusable: list[Any] = [[[1, 2], [3]], [[float("nan")] * 3], "text"]
    for vectors in unusable:
        with pytest.raises(BadInput, match="these are no vectors"):
            client.learn_vectors(vectors, "a")
