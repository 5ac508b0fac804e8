"""What a policy sees of a memory."""

from __future__ import annotations

import numpy as np
import pytest

from siesta.contracts import Memory


def test_a_memory_without_embeddings_says_so() -> None:
    zeros = np.zeros(2, np.int32)
    memory = Memory(np.arange(2), classes=zeros, rehearsed=zeros, new_classes=zeros)
    with pytest.raises(ValueError, match="no embeddings: create it with `embed`"):
        memory.embed(memory.ids)
