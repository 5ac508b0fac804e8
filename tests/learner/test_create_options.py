from __future__ import annotations

from typing import Any, get_type_hints

import pytest

from siesta.codecs import Raw
from siesta.errors import BadInput
from siesta.learner.create_options import CreateFields, CreateOptions


def test_images_and_vectors_have_defaults_of_their_own() -> None:
    images, vectors = CreateOptions(), CreateOptions(features=384, top_layers=2)
    assert (images.network, images.input_size, images.codec_name) == ("efficientnet_lite0", 224, "opq")
    assert (vectors.network, vectors.input_size, vectors.codec_name) == ("vectors_2", 384, "float16")
    assert CreateOptions(codec=Raw, image_size=96).codec_name == "raw"
    images.validate()
    vectors.validate()


def test_keyword_arguments_are_the_fields() -> None:
    hints = get_type_hints(CreateOptions)
    assert get_type_hints(CreateFields) == hints


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"image_size": 16}, "image_size is 16: give 32 to 1024 pixels"),
        ({"seed": -1}, "seed"),
        ({"head": "best"}, "there is no head 'best'"),
        ({"codec_options": {"books": 2}}, "books"),
        ({"codec": "raw", "cut": 3}, "the codec raw only works with cut 0: remove cut=3"),
        ({"features": 0}, "features is 0: give the length of your vectors, 1 to 8,192"),
        ({"features": 8, "top_layers": 4}, "top_layers is 4: give 1 to 3"),
        ({"top_layers": 1}, "top_layers is for a learner of vectors"),
        ({"features": 8, "image_size": 32}, "a learner of vectors has no backbone and no image size"),
        ({"features": 8, "backbone": "resnet18"}, "a learner of vectors has no backbone and no image size"),
        ({"features": 8, "cut": 3}, "a learner of vectors has no cut and no file of weights"),
        ({"features": 8, "weights": "random"}, "a learner of vectors has no cut and no file of weights"),
        ({"features": 8, "base": "folder"}, "base is folder, and this learner takes vectors: give an array"),
    ],
)
def test_fields_that_do_not_fit_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        options = CreateOptions(**fields)
        options.validate()
        assert options.network
