"""Cross-cutting: a package that is not siesta's, built and installed by pip, and each of its parts used by name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from siesta import Siesta
from siesta.errors import BadInput
from siesta.experiment import load_config, planned_runs, read_dataset, run_all
from siesta.policies import Uniform
from siesta.pretrain.run import pretrain
from siesta.pretrain.settings import PretrainSettings
from siesta.sleep.job import SleepJob
from siesta.sleep.options import SleepOptions
from tests.cli.running import assert_refused, result_of
from tests.conftest import MakePictures
from tests.experiment.toys import use_torch_engine
from tests.registry.packages import install

ROOT = Path(__file__).parents[2]
CONFORMANCE = (
    "policies/test_conformance.py",
    "sleep/test_augment.py",
    "learner/test_sleep.py",
    "selections/test_selections.py",
    "backbones",
    "engines/test_engines.py",
    "codecs/test_codecs.py",
    "data/test_datasets.py",
    "data/orders/test_orders.py",
    "methods/test_conformance.py",
    "pretrain/test_pretrainers.py",
)
"""The conformance tests, below `tests/`."""

NAMES = (
    "newer_half",
    "half_and_half",
    "largest_z",
    "three_layers",
    "half_precision",
    "channels_last",
    "colour_list",
    "backwards",
    "cosine_means",
    "mean_colour",
)
SOURCE = Path(__file__).parent / "outside_parts"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that pip has installed the package in."""
    folder = tmp_path_factory.mktemp("outside")
    shutil.copytree(SOURCE, folder / "source" / "outside_parts", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "source" / "outside_parts" / "pyproject.toml").rename(folder / "source" / "pyproject.toml")
    install = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", *install, "--target", str(folder / "site"), str(folder / "source")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "site"


@pytest.fixture(autouse=True)
def _installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the folder on the path of this process and of those that it starts."""
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH")))))


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("sleep", ["newer_half: from the package siesta-outside", "half_and_half: from the package siesta-outside"]),
        ("new", ["half_precision: from the package siesta-outside"]),
        ("pretrain", ["supervised, mean_colour or random"]),
    ],
)
def test_help_names_the_parts_without_importing_them(command: str, names: list[str]) -> None:
    absent = {"outside_parts"} if command == "pretrain" else {"outside_parts", "torch"}
    script = (
        f"import sys\nfrom siesta.cli import main\nsys.argv = ['siesta', '{command}', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"assert not {absent} & set(sys.modules)"
    )
    environment = {**os.environ, "COLUMNS": "1000"}
    shown = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment)
    assert all(name in shown.stdout for name in names)


def test_a_learner_sleeps_with_parts_of_the_package(
    site: Path, tmp_path: Path, make_pictures: MakePictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Backbone, codec, policy and augmentation by the command line; the second sleep is in the background."""
    path, options = tmp_path / "birds.siesta", ("--policy", "newer_half", "--augment", "half_and_half")
    photos = make_pictures(tmp_path / "photos", ["red", "green"], each=4)
    network = ("--backbone", "three_layers", "--weights", "random", "--image-size", "32", "--base", photos)
    result_of("new", path, *network, "--codec", "half_precision", "--codec-option", "scale=4")
    result_of("learn", path, photos)
    report = result_of("sleep", path, "--updates", "8", "--batch-size", "4", *options)
    assert report["settings"]["policy"] == "newer_half" and report["settings"]["augment"] == "half_and_half"
    assert report["samples"] == 4, "the newer half"
    result_of("sleep", path, "--updates", "8", "--batch-size", "4", "--background", "--nice", "1", *options)
    status = SleepJob(path).wait(60)
    assert status.state == "done" and status.report is not None, status
    assert status.report["settings"]["policy"] == "newer_half"
    with Siesta.open(path, read_only=True, engine="channels_last") as learner:
        assert learner.predict_one(photos / "red" / "0.png").label in ("red", "green")
        assert learner.settings["backbone"] == "three_layers" and learner.generation == 2
        assert learner.settings["codec"] == "half_precision" and learner.settings["code_bytes"] == 2 * 16**3
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(site)])
    with pytest.raises(BadInput, match=r"no (backbone|codec) .* or install the package that declares it"):
        Siesta.open(path, read_only=True)


def test_a_config_runs_the_data_set_order_selection_and_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_torch_engine(monkeypatch)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "colours.txt").write_text("red 200 0 0\ngreen 0 200 0\nblue 0 0 200\n")
    (tmp_path / "outside.toml").write_text(f"""
name = "outside"
[data]
dataset = "colour_list"
path = "{tmp_path / "colours.txt"}"
options = {{ each = 6 }}
image_size = 32
[network]
backbone = "three_layers"
weights = "random"
[orders.backwards]
[methods.cosine_means]
power = 0.5
[methods.siesta_er]
samples = 9
updates = 8
batch_size = 4
policy = "newer_half"
selection = "largest_z"
""")
    config = load_config(tmp_path / "outside.toml")
    dataset = read_dataset(config)
    rows = list(run_all(planned_runs(config, dataset), dataset, tmp_path / "out"))
    means = [row for row in rows if row["method"] == "cosine_means"]
    assert [row["n"] for row in means] == [3, 6, 9] and means[-1]["top1"] > 60
    assert {row["method"] for row in rows} == {"cosine_means", "siesta_er"}


def test_pretraining_uses_a_method_of_the_package(tmp_path: Path, make_pictures: MakePictures) -> None:
    photos = make_pictures(tmp_path / "photos", ["red", "green"], each=8)
    settings = PretrainSettings(
        "mean_colour", "three_layers", image_size=32, epochs=3, batch_size=8, options={"weight": 0.5}
    )
    result = pretrain(settings, photos, tmp_path / "weights.safetensors", cache=tmp_path / "cache")
    assert result.status == "trained" and (tmp_path / "weights.safetensors").is_file()


def test_a_broken_package_is_refused_by_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {"siesta.policies": {"broken": "no_such_module:Policy", "number": "broken_part:NUMBER"}}
    monkeypatch.syspath_prepend(install(tmp_path / "broken", "broken-parts", entries, broken_part="NUMBER = 3"))
    sleep = ("sleep", tmp_path / "birds.siesta", "--updates", "1", "--policy")
    assert_refused(3, "policy 'broken' of package broken-parts cannot be imported", *sleep, "broken")
    assert_refused(3, "policy 'number' of package broken-parts is of type int, not a class", *sleep, "number")
    assert_refused(3, "there is no policy 'best': choose one of .*, broken, newer_half, number", *sleep, "best")


def test_an_object_cannot_be_sent_to_a_background_sleep() -> None:
    with pytest.raises(BadInput, match=r"give policy and augment by name .*entry point"):
        SleepOptions(updates=1, policy=Uniform()).to_json()


@pytest.mark.slow
def test_the_conformance_tests_run_over_the_parts_of_the_package() -> None:
    files = [f"tests/{name}" for name in CONFORMANCE]
    command = [sys.executable, "-m", "pytest", "-v", "-m", "not slow", "-p", "outside_parts.examples"]
    done = subprocess.run([*command, "-k", " or ".join(NAMES), *files], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    passed = [line for line in done.stdout.splitlines() if " PASSED" in line]
    assert all(any(name in line for line in passed) for name in NAMES), done.stdout
