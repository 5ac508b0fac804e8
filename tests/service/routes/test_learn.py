"""Learning and predicting over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from siesta import Siesta
from siesta.service.client import Client, RequestRefused
from tests.service.server_process import ServerProcess, make_image
from tests.service.test_metrics import read_metric


def assert_refused(status: int, message: str, request: Callable[[], object]) -> None:
    with pytest.raises(RequestRefused, match=message) as caught:
        request()
    assert caught.value.status == status


def test_learned_images_are_known_at_once(taught: Client) -> None:
    prediction = taught.predict(make_image("blue", 9), top=2)
    assert (prediction.label, prediction.known) == ("blue", True)
    assert [scored.label for scored in prediction.top] == ["blue", "red"]
    both = taught.predict_many([make_image("red", 8), make_image("blue", 8)])
    assert [prediction.label for prediction in both] == ["red", "blue"]


def test_a_request_has_one_label_for_all_images_or_one_for_each(client: Client) -> None:
    assert len(client.learn([make_image("red", 1), make_image("blue", 1)], ["red", " blue "])) == 2
    assert len(client.learn([make_image("red", 2), make_image("red", 3)], "red")) == 2
    assert [(known.label, known.taught) for known in client.classes()] == [("red", 3), ("blue", 1)]
    assert_refused(422, "3 images, 2 labels", lambda: client.learn([make_image("red")] * 3, ["red", "blue"]))
    assert_refused(422, "no control characters", lambda: client.learn(make_image("red"), "a\nb"))
    assert_refused(422, "1 to 200 characters", lambda: client.learn(make_image("red"), "   "))
    assert sum(known.taught for known in client.classes()) == 4


def test_one_unreadable_image_refuses_the_request_and_is_named(taught: Client) -> None:
    message = r"image 2 \(picture\) is not a readable image"
    assert_refused(422, message, lambda: taught.learn([make_image("red", 3), b"no picture"], "red"))
    assert_refused(422, message, lambda: taught.predict_many([make_image("red", 3), b"no picture"]))
    assert sum(known.taught for known in taught.classes()) == 4


def test_predicting_before_learning_is_refused(client: Client) -> None:
    assert_refused(409, "yet: teach", lambda: client.predict(make_image("red")))


def test_a_score_below_the_threshold_is_unknown(taught: Client) -> None:
    prediction = taught.predict(make_image("green"), threshold=1.0)
    assert (prediction.label, prediction.known, len(prediction.top)) == ("unknown", False, 2)


def test_options_of_a_prediction_are_checked(taught: Client) -> None:
    image = make_image("green")
    assert_refused(409, "held.out", lambda: taught.predict(image, error_rate=0.1))
    assert_refused(422, "not both", lambda: taught.predict(image, threshold=0.5, error_rate=0.1))
    assert_refused(422, "top", lambda: taught.predict(image, top=0))


@pytest.mark.parametrize("threshold", [-1.0, 1.5, float("nan")])
def test_a_threshold_is_between_0_and_1(taught: Client, threshold: float) -> None:
    assert_refused(422, "threshold", lambda: taught.predict(make_image("red"), threshold=threshold))


def test_concurrent_requests_are_predicted_in_fewer_batches(taught: Client, server: ServerProcess) -> None:
    clients = 24
    batches_before = read_metric(server, 'siesta_together_count{work="predict"}')
    start = threading.Barrier(clients)

    def predict(number: int) -> str:
        with server.client() as client:
            client.info()  # connects
            start.wait()
            return client.predict(make_image("red" if number % 2 else "blue", number)).label

    with ThreadPoolExecutor(clients) as pool:
        labels = list(pool.map(predict, range(clients)))
    assert labels == ["blue", "red"] * (clients // 2)
    assert read_metric(server, 'siesta_together_count{work="predict"}') - batches_before < clients


def test_other_processes_may_read_the_learner_meanwhile(taught: Client, server: ServerProcess) -> None:
    with Siesta.open(server.path, read_only=True) as reader:
        assert reader.info().samples.stored == 4


def test_a_rejected_label_falls_and_forgetting_the_rejection_brings_it_back(taught: Client) -> None:
    image = make_image("blue", 9)
    before = taught.predict(image)
    (rejected,) = taught.reject(image, "blue")
    after = taught.predict(image)
    assert (before.label, after.label) == ("blue", "red")
    assert {each.label: each.score for each in after.top}["blue"] == 0.0
    assert [known.rejections for known in taught.classes()] == [[], [rejected]]
    assert taught.reject(image, ["red", "blue"])[1] == rejected
    assert taught.predict(image).known is False
    for number in {each for known in taught.classes() for each in known.rejections}:
        taught.forget_sample(number)
    assert taught.predict(image) == before
    assert_refused(404, "no class 'pink'", lambda: taught.reject(image, ["blue", "pink"]))
    assert_refused(404, "no sample 999", lambda: taught.forget_sample(999))
    assert all(known.rejections == [] for known in taught.classes())
