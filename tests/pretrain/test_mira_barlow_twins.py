"""The combined loss is that of MIRA plus that of Barlow Twins divided by its width."""

from __future__ import annotations

import pytest
import torch

from siesta.pretrain.barlow_twins import barlow_loss
from siesta.pretrain.mira import MIRA
from siesta.pretrain.mira_barlow_twins import MIRABarlowTwins
from tests.pretrain.toys import tiny_encoder, views_for


def make(redundancy: float = 0.0051) -> MIRABarlowTwins:
    return MIRABarlowTwins(tiny_encoder(), prototypes=6, hidden=8, width=12, redundancy=redundancy).eval()


def test_the_losses_are_added() -> None:
    method, views = make(), views_for("mira+barlow_twins")
    with torch.no_grad():
        mira = method.mira(views, 0.0).loss.item()
        z = method.encoder.encode_crops(views.crops).chunk(len(views.crops))
        twins = barlow_loss(method.projector(z[0]), method.projector(z[1]), 0.0051).item()
    assert twins > 0
    assert method(views, 0.0).loss.item() == pytest.approx(mira + twins / 12, rel=1e-5)


def test_collapse_is_watched_on_the_embeddings_of_mira() -> None:
    method, views = make(), views_for("mira+barlow_twins")
    output, alone = method(views, 0.0), method.mira(views, 0.0)
    assert output.embedding is not None and alone.embedding is not None
    torch.testing.assert_close(output.embedding, alone.embedding)


def test_crops_and_recipe_are_those_of_mira() -> None:
    assert MIRABarlowTwins.crop_specs == MIRA.crop_specs and MIRABarlowTwins.recipe == MIRA.recipe
