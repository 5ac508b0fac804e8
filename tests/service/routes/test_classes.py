"""Classes and samples over HTTP: listed, renamed, merged, corrected, forgotten, and their thumbnails."""

from __future__ import annotations

import io
from collections.abc import Callable

import httpx
import numpy as np
import pytest
from PIL import Image

from siesta.service.client import Client, RequestRefused
from tests.service.server_process import ServerProcess, make_image


def assert_refused(status: int, message: str, request: Callable[[], object]) -> None:
    with pytest.raises(RequestRefused, match=message) as caught:
        request()
    assert caught.value.status == status


def test_classes_are_listed_with_their_counts(taught: Client) -> None:
    assert [(known.label, known.taught, known.stored) for known in taught.classes()] == [("red", 2, 2), ("blue", 2, 2)]


def test_a_class_is_renamed(taught: Client) -> None:
    red, _ = taught.classes()
    assert taught.rename(red.id, "crimson").label == "crimson"
    assert taught.rename(red.id, "crimson").label == "crimson", "its own label is no conflict"
    assert_refused(409, "a class 'blue' already: merge", lambda: taught.rename(red.id, "blue"))


def test_samples_are_corrected_and_forgotten(taught: Client) -> None:
    red, _ = taught.classes()
    new_id = taught.correct(red.thumbnails[0], "blue")
    red, blue = taught.classes()
    assert (red.stored, blue.stored, blue.thumbnails[0]) == (1, 3, new_id)
    taught.forget_sample(new_id)
    assert_refused(404, f"no sample {new_id}", lambda: taught.forget_sample(new_id))
    assert_refused(404, f"no sample {new_id}", lambda: taught.correct(new_id, "blue"))


def test_classes_are_merged_and_forgotten(taught: Client) -> None:
    red, blue = taught.classes()
    merged = taught.merge(red.id, blue.id)
    assert (merged.id, merged.stored, len(merged.thumbnails)) == (blue.id, 4, 4)
    assert_refused(422, "cannot be merged with itself", lambda: taught.merge(blue.id, blue.id))
    assert_refused(404, f"no class {red.id}", lambda: taught.merge(red.id, blue.id))
    taught.forget(blue.id)
    assert taught.classes() == []
    assert_refused(404, f"no class {blue.id}", lambda: taught.forget(blue.id))


@pytest.mark.parametrize(
    "label",
    ["<script>alert(1)</script>", "../../etc/passwd", "a/b?c#d%2e", "'; DROP TABLE classes; --", "深い 🌙"],
)
def test_a_label_is_never_taken_for_markup_a_path_or_sql(client: Client, label: str) -> None:
    client.learn(make_image("red"), label)
    (known,) = client.classes()
    assert known.label == label
    assert client.rename(known.id, f"{label}.").label == f"{label}."


def test_a_thumbnail_shows_the_learned_image_until_it_is_forgotten(taught: Client, server: ServerProcess) -> None:
    red = taught.classes()[0]
    with Image.open(io.BytesIO(taught.thumbnail(red.thumbnails[0]))) as thumbnail:
        assert (thumbnail.format, thumbnail.size) == ("WEBP", (96, 96))
        means = np.asarray(thumbnail.convert("RGB")).mean(axis=(0, 1))
    assert means[0] > 150 and means[1:].max() < 100
    url = f"{server.url}/v1/samples/{red.thumbnails[0]}/thumbnail"
    tag = httpx.get(url).headers["etag"]
    assert httpx.get(url, headers={"If-None-Match": tag}).status_code == 304
    taught.forget(red.id)
    assert_refused(404, "no image of sample", lambda: taught.thumbnail(red.thumbnails[0]))
    assert httpx.get(url, headers={"If-None-Match": tag}).status_code == 404
