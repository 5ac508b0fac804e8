"""The paper's configs: complete, as published, and each one runs."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from siesta.errors import BadInput
from siesta.experiment import Config, PlannedRun, load_config, planned_runs, read_dataset, run, run_all
from siesta.experiment.config_file import read_values, set_key
from siesta.experiment.initial_state import prepare_initial_state
from siesta.experiment.paper.compare import compare_with_paper
from siesta.experiment.paper.configs import find_dataset, paper_configs, prepare_config, requirements
from siesta.experiment.paper.tables import FIGURES, PUBLISHED_ROWS, TABLES
from siesta.methods import METHODS
from tests.experiment import toys

ROOT = Path(__file__).resolve().parents[3]
CONFIGS = {path.stem: path for path in sorted((ROOT / "configs" / "paper").glob("*.toml"))}

MEASURED = {  # every figure of the paper that shows measurements, by its label in the source
    "fig:summary",
    "subfig:learning_curve",
    "subfig:gflops",
    "subfig:sleep_plot3",
    "subfig:sleep_plot4",
    "subfig:replay_plot_imagenet",
    "subfig:replay_plot_places",
    "fig:online",
}

SIZES = (  # all that a toy run may change: where the data are, and how much there is of everything
    "data.path",
    "data.options.classes",
    "data.image_size",
    "network.codec_pictures",
    "network.weights",
    "methods.*.network.weights",
    "base.epochs",
    "orders.*.base_classes",
    "orders.*.classes_per_step",
    "orders.*.steps",
    "samples",
    "methods.*.samples",
    "methods.*.updates",
    "methods.*.epochs",
    "methods.*.first_epochs",
    "methods.*.tuning_epochs",
    "methods.*.classifier_epochs",
    "methods.*.compression_epochs",
    "methods.*.exemplars",
)

SIDES = {"layers": 96}  # so that 30 pictures have vectors enough for a codec after 14 layers, too
QUICK = {"layers": {"layer_8", "layer_14"}}  # after 3 layers there are so many vectors that fitting takes a minute

REPEATED = {"buffer_size-der", "flops-der", "no_aug-der", "sleep_length-four_times", "ssl-random_top"}
"""Last methods whose kind is quickly run on the same data by another config; these run with the slow tests."""


# -- complete -----------------------------------------------------------------------------------------------------


def test_every_table_and_figure_has_a_config() -> None:
    assert set(FIGURES) == MEASURED
    shown = {name for path in CONFIGS.values() for name in load_config(path).shows}
    assert shown == set(TABLES) | MEASURED


def test_every_printed_row_is_compared_with_a_method() -> None:
    group_by_dataset = {
        tuple(row)
        for path in CONFIGS.values()
        for methods in load_config(path).published.values()
        for row in methods.values()
    }
    assert {(row.table, row.method) for row in PUBLISHED_ROWS if row.printed} <= group_by_dataset


def test_the_docs_have_every_experiment_with_what_it_shows() -> None:
    text = (ROOT / "docs" / "paper.md").read_text("utf-8")
    for name, path in CONFIGS.items():
        assert f"`siesta reproduce {name} --data DIR" in text
        for shown in load_config(path).shows:
            assert f"`{shown.removeprefix('tab:')}`" in text, shown


@pytest.mark.parametrize("path", CONFIGS.values(), ids=lambda path: path.stem)
def test_its_header_gives_the_command_and_the_published_values(path: Path) -> None:
    header = path.read_text("utf-8").split("\n\n")[0]
    config = load_config(path)
    files = {config.network.weights, *(method.network.weights for method in config.methods)} - {"random", "published"}
    several = len(files) > 1
    command = f"siesta reproduce {path.stem} --data DIR --weights {'FOLDER' if several else 'FILE'}"
    assert f"#   {command}" in header
    assert f"`{command}" in (ROOT / "docs" / "paper.md").read_text("utf-8")
    rows = [row for methods in config.published.values() for row in methods.values()]
    for row in PUBLISHED_ROWS:
        if (row.table, row.method) in rows:
            for value in (row.mu, row.alpha, row.gain, row.hours):
                assert value is None or f"{value:.2f}" in header, f"{row.method}: {value}"


def test_published_settings_that_all_share() -> None:
    for path in CONFIGS.values():
        config = load_config(path)
        assert (config.network.backbone, config.network.cut, config.network.space) == ("mobilenet_v3_large", 8, "plain")
        assert config.data.image_size == 224 and config.data.held_out == 0
        if config.base is not None:
            base = config.base
            assert (base.epochs, base.batch_size, base.lr, base.mean_share) == (50, 64, 0.2, 0.0)
        for method in config.methods:
            settings = method.settings.model_dump()
            if METHODS[method.kind].sleeps:
                linear = 0.2 * settings["batch_size"] / 64
                lr = 0.3 if path.stem == "cub200" else linear
                assert (settings["lr"], settings["layer_decay"]) == (pytest.approx(lr), 0.99)
                assert settings["mean_share"] == 0
                assert (settings["augment"] is not None) == (method.kind == "siesta_aug")
            if method.kind in ("er", "siesta_er") and path.stem != "cub200":
                assert method.samples == 130_000


def _updates(name: str) -> dict[str, int]:
    """U by the settings of a config and the sizes of the real data: 100 x 1281 pictures a step of ImageNet, or so."""
    sizes = {
        "imagenet": [128_117] * 9,
        "places365": [1_803_460 // 5] * 5,
        "cub200": [1500, 1500, 1496, 1498],
        "places365_lt": [62_500 * 50 // 365] * 6,
    }
    config = load_config(CONFIGS[name])
    whole = {"imagenet": 1_281_167, "places365": 1_803_460, "cub200": 5_994, "places365_lt": 62_500}
    of = config.data.dataset
    return {
        method.name: method.settings.planned_updates([whole[of]] if METHODS[method.kind].offline else sizes[of])
        for method in config.methods
        if not METHODS[method.kind].collects
    }


@pytest.mark.parametrize("name", ["no_aug", "aug", "aug_supplement"])
def test_epochs_of_batch_learners_are_those_that_the_published_updates_imply(name: str) -> None:
    """All trainings of a step together, on all of its images and the exemplars, in the nine steps after the first."""
    config = load_config(CONFIGS[name])
    collecting = [method for method in config.methods if METHODS[method.kind].collects]
    assert len(collecting) == (11 if name == "aug" else 1)
    for method in collecting:
        settings = method.settings.model_dump()
        tuned = sum(settings.get(key, 0) for key in ("tuning_epochs", "classifier_epochs"))
        updates = (settings["epochs"] + tuned) * 9 * (128_117 + settings["exemplars"])
        table, row = config.published["class_incremental"][method.name]
        printed = next(some for some in PUBLISHED_ROWS if (some.table, some.method) == (table, row))
        assert printed.updates is not None
        assert updates / 1e6 == pytest.approx(printed.updates, rel=0.003), method.name
        assert method.base is None, "it learns the first step as any other"


@pytest.mark.parametrize("name", ["no_aug", "aug", "aug_supplement", "places365", "cub200"])
def test_updates_are_the_published_ones(name: str) -> None:
    config, planned = load_config(CONFIGS[name]), _updates(name)
    for method, (table, row) in config.published["class_incremental"].items():
        printed = next(some for some in PUBLISHED_ROWS if (some.table, some.method) == (table, row))
        if method in planned and not (method.startswith("offline") and row == "Offline" and name != "no_aug"):
            assert printed.updates is not None
            unit = TABLES[table].updates_unit
            assert planned[method] / unit == pytest.approx(printed.updates, rel=0.003), method


# -- what is needed -----------------------------------------------------------------------------------------------


def test_data_sets_are_found_by_their_layouts(tmp_path: Path) -> None:
    sets = toys.make_all(tmp_path)
    for name, folder in sets.items():
        assert find_dataset(name, tmp_path) == find_dataset(name, folder) == folder
    assert find_dataset("imagenet", tmp_path / "cub200") is None
    assert all(some.found == tmp_path / some.dataset for some in requirements(tmp_path))


def test_missing_files_are_reported_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = toys.make_all(tmp_path / "sets")
    for arguments, words in (
        ({"name": "mnist"}, "no experiment 'mnist': choose from architectures, "),
        ({"name": "no_aug"}, "imagenet is not at data/imagenet: give its folder with --data"),
        (
            {"name": "no_aug", "data": data["imagenet"]},
            "no weights at weights/swav_mobilenet_v3_large.pth: .*--weights",
        ),
        ({"name": "ssl", "data": data["imagenet"]}, "no weights at weights/supervised_"),
        ({"name": "cub200", "data": data["cub200"], "weights": "random"}, "data/imagenet_base: .*--codec-pictures"),
        ({"name": "aug", "data": data["imagenet"], "methods": ["dytoxx"]}, "no method 'dytoxx'"),
    ):
        with pytest.raises(BadInput, match=words) as caught:
            prepare_config(**arguments)
        assert "\n" not in str(caught.value)


def test_a_missing_order_of_classes_is_reported(tmp_path: Path) -> None:
    (toys.imagenet(tmp_path / "imagenet") / "imagenet_class_order.txt").unlink()
    with pytest.raises(BadInput, match=r"REMIND's imagenet_class_order\.txt, is missing: put it into .*imagenet$"):
        prepare_config("no_aug", tmp_path, "random")


def test_methods_that_cannot_run_are_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    imagenet = toys.make_all(tmp_path)["imagenet"]
    (tmp_path / "swav.pth").touch()
    config, missing = prepare_config("aug", tmp_path, "swav.pth")
    names = [method.name for method in config.methods]
    assert names[:3] == ["siesta_aug", "siesta", "er"] and len(names) == 14
    assert config.data.path == str(imagenet)
    assert [method.network.weights for method in config.methods] == ["swav.pth"] * 3 + ["random"] * 11
    assert missing.pop("remind").startswith("there are no weights at weights/swav_resnet18.pth")
    assert missing == {}


def test_weights_may_be_a_folder_of_several_or_random(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toys.make_all(tmp_path)
    for name in ("swav_mobilenet_v3_large.pth", "swav_resnet18.pth"):
        (tmp_path / name).touch()
    config, missing = prepare_config("architectures", tmp_path, str(tmp_path))
    assert missing == {}
    assert [Path(method.network.weights) for method in config.methods] == [
        tmp_path / "swav_mobilenet_v3_large.pth",
        tmp_path / "swav_mobilenet_v3_large.pth",
        tmp_path / "swav_resnet18.pth",
        tmp_path / "swav_resnet18.pth",
    ]
    (tmp_path / "2020").write_text("no number")
    monkeypatch.chdir(tmp_path)
    assert prepare_config("layers", tmp_path, "2020")[0].network.weights == "2020"
    config, _ = prepare_config("ssl", tmp_path, "random")
    assert {method.network.weights for method in config.methods} == {"random"}


def test_configs_are_found_in_the_current_folder_or_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(paper_configs()) == list(CONFIGS)
    (tmp_path / "configs" / "paper").mkdir(parents=True)
    shutil.copy(CONFIGS["no_aug"], tmp_path / "configs" / "paper" / "mine.toml")
    assert list(paper_configs()) == ["mine"]


# -- every one runs -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    return toys.make_all(tmp_path_factory.mktemp("toys"))


@pytest.fixture(scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Codes and starts are made once for all configs that have the same; graphs take long, so torch does without."""
    made: dict[object, Path] = {}
    folder = tmp_path_factory.mktemp("shared")

    def shared_start(planned: PlannedRun, dataset: Any, out: Path, say: Any) -> Path:
        method, seen = planned.method, planned.stream
        base = None if method.base is None or not seen.base else method.base.model_dump_json()
        first = None if planned.base_step is None else [dataset.train.names[row] for row in planned.base_step]
        steps = [seen.hash if seen.base else "", str(first), str(planned.config.data.image_size)]
        key = (planned.spec.codec, planned.samples, planned.seed, method.network.model_dump_json(), base, *steps)
        if key not in made:
            made[key] = prepare_initial_state(planned, dataset, folder / str(len(made)), say)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setattr(run, "prepare_initial_state", shared_start)
        toys.use_torch_engine(patch)
        yield


def _toy(path: Path, data: Mapping[str, Path]) -> tuple[Config, dict[str, Any], dict[str, Any]]:
    """A config made small: itself, its values before, and after."""
    before, after = read_values(path), read_values(path)
    changes = [
        f"data.path={data[before['data']['dataset']]}",
        f"data.image_size={SIDES.get(path.stem, 48)}",
        "network.weights=random",
    ]
    if "classes" in before["data"].get("options", {}):
        changes.append(f"data.options.classes={len(toys.CLASSES)}")
    if "codec_pictures" in before["network"]:
        changes.append(f"network.codec_pictures={data['imagenet']}/train")
    if "base" in before:
        changes.append("base.epochs=1")
    for order, options in before["orders"].items():
        sizes = {"base_classes": 2, "classes_per_step": 1, "steps": 1}
        changes += [f"orders.{order}.{key}={value}" for key, value in sizes.items() if key in options]
    for method, entry in before["methods"].items():
        sizes = {"updates": 4, "epochs": 1, "samples": 100, "exemplars": 4}
        sizes |= dict.fromkeys(["first_epochs", "tuning_epochs", "classifier_epochs", "compression_epochs"], 1)
        changes += [f"methods.{method}.{key}={value}" for key, value in sizes.items() if key in entry]
        if "weights" in entry.get("network", {}):
            changes.append(f"methods.{method}.network.weights=random")
    changes.append("samples=100")
    for change in changes:
        set_key(after, change)
    return load_config(path, changes), before, after


def _leaves(values: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        nested = isinstance(value, dict) and value
        found |= _leaves(value, f"{where}{name}.") if nested else {f"{where}{name}": value}
    return found


@pytest.mark.parametrize("path", CONFIGS.values(), ids=lambda path: path.stem)
def test_a_toy_run_changes_data_and_sizes_only(path: Path, data: Mapping[str, Path]) -> None:
    _, before, after = _toy(path, data)
    old, new = _leaves(before), _leaves(after)
    changed = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    assert changed and all(any(fnmatch(key, allowed) for allowed in SIZES) for key in changed), changed


def _runs(path: Path) -> list[Any]:
    """Each method of a config on its own; the first and most of the last at once, the others with the slow tests."""
    names = list(tomllib.loads(path.read_text("utf-8"))["methods"])
    quick = {name for name in QUICK.get(path.stem, {names[0], names[-1]}) if f"{path.stem}-{name}" not in REPEATED}
    slow = pytest.mark.slow
    return [pytest.param(path, name, id=f"{path.stem}-{name}", marks=[] if name in quick else [slow]) for name in names]


@pytest.mark.usefixtures("_shared")
@pytest.mark.parametrize(("path", "method"), [some for path in CONFIGS.values() for some in _runs(path)])
def test_every_config_runs(path: Path, method: str, data: Mapping[str, Path], tmp_path: Path) -> None:
    toy, *_ = _toy(path, data)
    chosen = Config(**{**vars(toy), "seeds": (0,), "methods": tuple(m for m in toy.methods if m.name == method)})
    dataset = read_dataset(chosen)
    rows = list(run_all(planned_runs(chosen, dataset), dataset, tmp_path))
    steps = 1 if METHODS[chosen.methods[0].kind].offline else 2
    assert {row["step"] for row in rows if row["phase"] == "after"} == set(range(steps))
    assert rows[-1]["classes"] == len(dataset.classes)
    for line in compare_with_paper(chosen, tmp_path, {}):
        assert line.runs == 1 and {"alpha", "parameters", "memory", "updates"} <= line.ours.keys()
        named = chosen.published.get(line.order, {}).get(method)
        assert (line.published and (line.published.table, line.published.method)) == named
    json.dumps(rows, allow_nan=False)
