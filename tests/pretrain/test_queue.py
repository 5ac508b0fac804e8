"""The queue's order."""

from __future__ import annotations

import torch

from siesta.pretrain.queue import EmbeddingQueue


def _batch(*values: float) -> torch.Tensor:
    return torch.tensor(values)[:, None]


def test_the_oldest_rows_are_dropped_first() -> None:
    queue = EmbeddingQueue(4, 1)
    seen = []
    for batch in (_batch(1, 2), _batch(3, 4), _batch(5, 6), _batch(7, 8, 9)):
        queue.put(batch)
        seen.append((queue.rows().flatten().tolist(), queue.full))
    assert seen == [([1, 2], False), ([3, 4, 1, 2], True), ([5, 6, 3, 4], True), ([7, 8, 9, 5], True)]


def test_a_batch_longer_than_the_queue_is_cut() -> None:
    queue = EmbeddingQueue(2, 1)
    queue.put(_batch(1, 2, 3))
    assert queue.rows().flatten().tolist() == [1, 2] and queue.full


def test_the_queue_is_part_of_a_checkpoint() -> None:
    queue, other = EmbeddingQueue(3, 1), EmbeddingQueue(3, 1)
    queue.put(_batch(1, 2))
    other.load_state_dict(queue.state_dict())
    assert torch.equal(other.rows(), queue.rows()) and not other.full
