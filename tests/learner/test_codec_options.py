"""Options of codecs are refused before any image is read."""

from __future__ import annotations

from typing import Any

import pytest

from siesta.errors import BadInput
from siesta.learner.codec_options import check_codec_options


def test_options_of_a_codec_are_accepted() -> None:
    check_codec_options("opq", {"codebooks": 32, "bits": 4})
    check_codec_options("raw", {})


@pytest.mark.parametrize(
    ("codec", "options", "message"),
    [
        ("opq", {"books": 32}, "codec opq has no option 'books': it has codebooks, bits"),
        ("opq", {"codebooks": "many"}, "'codebooks' of codec opq must be a whole number, not 'many'"),
        ("raw", {"bits": 4}, "codec raw has no option 'bits': it has none"),
    ],
)
def test_other_options_are_refused(codec: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        check_codec_options(codec, options)
