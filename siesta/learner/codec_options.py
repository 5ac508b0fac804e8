"""Options of a codec, checked before images are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from siesta.codecs import CODECS
from siesta.data.options import check_options

__all__ = ["check_codec_options"]


def check_codec_options(codec: str, options: Mapping[str, Any]) -> None:
    """Raise `BadInput` unless these are options of a codec, with values of the right types.

    Args:
        codec: A key of `CODECS`.
        options: Values by name.
    """
    check_options(f"codec {codec}", CODECS[codec].fit, options)
