"""The module that decodes in torch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from siesta.codecs.decoder import Decoder


def shifted(codes: Tensor, *, table: Tensor, shift: Tensor) -> Tensor:
    return table[codes.long()] + shift


def test_what_a_function_needs_moves_with_the_module() -> None:
    decoder = Decoder(shifted, table=np.arange(8.0)[::2], shift=np.float64(0.5).reshape(1))
    assert decoder(torch.tensor([[3, 0]])).tolist() == [[6.5, 0.5]]
    assert {name: buffer.device.type for name, buffer in decoder.to("meta").named_buffers()} == {
        "table": "meta",
        "shift": "meta",
    }
    assert not decoder.state_dict(), "a codec is stored once, by its own state"
