"""Published values are shown only where they are comparable."""

from __future__ import annotations

from pathlib import Path

import pytest

from siesta.experiment.report.groups import SeedGroup, group_by_dataset
from siesta.experiment.report.published import published_cells, published_gain
from siesta.experiment.results import read_results
from tests.experiment.written_runs import write_run


def group_of(
    folder: Path, dataset: str, order: str, method: str, classes: int = 6, steps: int = 3, **options: int
) -> SeedGroup:
    data = {"dataset": dataset, "image_size": 224, "options": options}
    write_run(folder / "toy", method, order, classes=classes, steps=steps, each=1, data=data)
    ((group,),) = group_by_dataset(read_results([folder]).runs)[0].orders.values()
    return group


@pytest.mark.parametrize(
    ("dataset", "order", "method", "alpha", "k"),
    [
        ("cub200", "class_incremental", "siesta", "83.52±0.28", 5),
        ("cub200", "class_incremental", "er", "74.62±1.41", 5),
        ("imagenet", "class_incremental", "siesta", "83.59", 5),
        ("imagenet", "class_incremental", "siesta_aug", "87.00", 5),
        ("imagenet", "class_incremental", "slda", "55.72", 5),
        ("imagenet", "class_incremental", "offline_whole", "83.31", 5),
        ("imagenet", "iid", "remind", "79.52", 5),
        ("places365_lt", "class_incremental", "siesta_uniform", "20.15±0.41", 1),
        ("places365", "class_incremental", "siesta", "81.07", 5),
    ],
)
def test_published_values_of_each_data_set_order_and_method(
    tmp_path: Path, dataset: str, order: str, method: str, alpha: str, k: int
) -> None:
    compare_with_paper = published_cells(group_of(tmp_path, dataset, order, method))
    assert compare_with_paper is not None
    assert (compare_with_paper.alpha, compare_with_paper.k) == (alpha, k)


@pytest.mark.parametrize(
    ("dataset", "order", "method"),
    [
        ("cub200", "iid", "siesta"),
        ("cub200", "class_incremental", "siesta_aug"),
        ("cub200", "class_incremental", "offline_whole"),  # only a comment in the paper's source
        ("cub200", "class_incremental", "finetune"),
        ("image_folder", "class_incremental", "siesta"),
    ],
)
def test_methods_that_the_paper_does_not_have_get_no_values(
    tmp_path: Path, dataset: str, order: str, method: str
) -> None:
    assert published_cells(group_of(tmp_path, dataset, order, method)) is None


def test_a_part_of_a_data_set_has_no_published_values(tmp_path: Path) -> None:
    assert published_cells(group_of(tmp_path, "cub200", "class_incremental", "siesta", classes_=3)) is not None
    write_run(tmp_path / "other", data={"dataset": "cub200", "image_size": 224, "options": {"classes": 6}})
    ((group,),) = group_by_dataset(read_results([tmp_path / "other"]).runs)[0].orders.values()
    assert published_cells(group) is None


@pytest.mark.parametrize(("pixels", "classes"), [(112, 6), (224, 4)])
def test_other_image_sizes_and_class_counts_have_no_published_values(tmp_path: Path, pixels: int, classes: int) -> None:
    write_run(tmp_path / "toy", data={"dataset": "cub200", "image_size": pixels}, classes=classes, steps=2)
    ((group,),) = group_by_dataset(read_results([tmp_path]).runs)[0].orders.values()
    assert published_cells(group) is None


def test_gains(tmp_path: Path) -> None:
    group = group_of(tmp_path / "a", "imagenet", "class_incremental", "siesta", classes=200, steps=2)
    assert published_gain(group) == "+4.25±1.38"
    assert published_gain(group_of(tmp_path / "b", "imagenet", "class_incremental", "siesta")) is None
    assert published_gain(group_of(tmp_path / "c", "cub200", "class_incremental", "siesta")) is None
