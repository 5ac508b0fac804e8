"""The whole wake side runs where torch, FAISS and ONNX's exporter cannot be imported."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from siesta import Siesta, SiestaError, SleepOptions
from siesta.learner.packed_sleep import sleep_on_pack
from siesta.service.client import Client
from tests.conftest import MakePictures

COMMAND = [sys.executable, "-m", "tests.without_torch"]
ROOT = Path(__file__).parents[1]


def run(*arguments: str | Path, code: int = 0) -> str:
    """Run a command without torch; return what it printed, on stderr if it was to fail."""
    done = subprocess.run([*COMMAND, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


@pytest.fixture
def pictures(tmp_path: Path, make_pictures: MakePictures) -> Path:
    return make_pictures(tmp_path / "pictures", ["red", "green"])


@pytest.fixture
def learner(tmp_path: Path, pictures: Path) -> Path:
    run("new", tmp_path / "x.siesta", "--image-size", "64")
    run("learn", tmp_path / "x.siesta", pictures)
    return tmp_path / "x.siesta"


def test_every_command_of_the_wake_side_runs(learner: Path, pictures: Path) -> None:
    assert "Learned 0 images; 6 were known" in run("learn", learner, pictures)
    assert json.loads(run("predict", learner, pictures / "red" / "0.png", "--json"))[0]["label"] == "red"
    assert json.loads(run("eval", learner, pictures, "--json"))["top1"] == 100.0
    assert json.loads(run("info", learner, "--json"))["samples"]["stored"] == 6
    run("rename", learner, "red", "scarlet")
    run("correct", learner, "1", "scarlet")
    run("correct", learner, "2", "blue")
    run("merge", learner, "blue", "scarlet")
    run("forget", learner, "green")
    assert "initial weights" in run("generations", learner)
    run("rollback", learner, "0")
    run("check", learner, "--full")
    run("repair", learner)
    assert [each["label"] for each in json.loads(run("info", learner, "--json"))["classes"]] == ["scarlet"]


def test_a_learner_of_vectors_needs_no_torch(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", vectors=np.eye(3), labels=["a", "b", "c"])
    run("new", tmp_path / "v.siesta", "--features", "3")
    assert "Learned 3 vectors" in run("learn", tmp_path / "v.siesta", tmp_path / "x.npz")
    answers = json.loads(run("predict", tmp_path / "v.siesta", tmp_path / "x.npz", "--json"))
    assert [answer["label"] for answer in answers] == ["a", "b", "c"]
    run("check", tmp_path / "v.siesta", "--full")


def test_commands_that_train_say_what_to_install(learner: Path, pictures: Path, tmp_path: Path) -> None:
    sleeping = "sleep needs torch, which is not installed: pip install 'siesta-learn[sleep]'"
    assert sleeping in " ".join(run("sleep", learner, "--updates", "4", code=3).split())
    assert sleeping in " ".join(run("sleep", learner, "--updates", "4", "--background", code=3).split())
    for command, words in (
        (("new", tmp_path / "y", "--weights", "random"), "a new learner with random weights needs torch"),
        (("new", tmp_path / "y", "--base", pictures, "--image-size", "64"), "fitting a codec needs faiss"),
        (("refit", learner, "--base", pictures), "fitting a codec needs faiss"),
        (("base", tmp_path / "y", "--data", pictures), "base training needs torch"),
        (("pretrain", "swav", "--data", pictures, "--out", tmp_path / "w"), "pre-training needs torch"),
        (("pretrain", "--help"), "pre-training needs torch"),
        (("demo",), "the demo needs torch, which is not installed: pip install 'siesta-learn[demo]'"),
    ):
        said = run(*command, code=3)
        assert words in " ".join(said.split()) and "Traceback" not in said
    assert not (tmp_path / "y").exists()


def test_weights_that_another_process_trained_are_used(learner: Path, pictures: Path) -> None:
    with Siesta.open(learner) as awake:
        awake.sleep(updates=8, batch_size=4, lr=0.1)
        images = [pictures / label / "0.png" for label in ("red", "green")]
        expected = awake.predict_many(images)

    assert "* 1" in " ".join(run("generations", learner).split())
    answers = json.loads(run("predict", learner, *images, "--json"))
    for answer, prediction in zip(answers, expected, strict=True):
        assert answer["label"] == prediction.label and answer["top"][0]["score"] == pytest.approx(
            prediction.score, abs=1e-5
        )
    run("check", learner, "--full")
    run("rollback", learner, "0")


def test_another_machine_sleeps_for_a_device(learner: Path, tmp_path: Path) -> None:
    run("pack", learner, "--for-sleep", tmp_path / "night")
    assert "sleep needs torch" in " ".join(run("sleep", tmp_path / "night", "--updates", "4", code=3).split())
    run("rename", learner, "red", "scarlet")
    run("correct", learner, "1", "blue")
    sleep_on_pack(tmp_path / "night", SleepOptions(updates=4, batch_size=4))
    assert "Generation 1 is in use" in run("take", learner, tmp_path / "night")
    run("check", learner, "--full")


@pytest.fixture
def client(learner: Path) -> Iterator[Client]:
    """A client of a service that runs without torch."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([*COMMAND, "serve", str(learner), "--port", str(port)], cwd=ROOT)
    try:
        with Client(f"http://127.0.0.1:{port}") as made:
            wait_until(lambda: process.poll() is not None or is_ready(made))
            yield made
    finally:
        process.terminate()
        assert process.wait(60) in (0, 130, -15)


def is_ready(client: Client) -> bool:
    try:
        client.info()
    except SiestaError:
        return False
    return True


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_the_service_learns_predicts_and_swaps_weights(client: Client, learner: Path, pictures: Path) -> None:
    image = pictures / "red" / "0.png"
    client.learn(image, "red")
    assert client.predict(image).label == "red"
    with pytest.raises(SiestaError, match="sleep needs torch, which is not installed"):
        client.sleep(updates=4)
    with Siesta.open(learner, to_sleep=True) as other:
        other.sleep(updates=4, batch_size=2)
        expected = other.predict_one(image)
    wait_until(lambda: any(each.number == 1 and each.in_use for each in client.generations()))
    assert client.predict(image).score == pytest.approx(expected.score, abs=1e-5)


def test_codecs_answer_alike_with_and_without_torch(learner: Path, pictures: Path) -> None:
    """The same learner, asked in this process, where torch is loaded, and in one without it."""
    files = sorted(pictures.rglob("*.png"))
    with Siesta.open(learner, read_only=True) as here:
        scores = [prediction.score for prediction in here.predict_many(files)]
    answers = json.loads(run("predict", learner, *files, "--json"))
    np.testing.assert_allclose([answer["top"][0]["score"] for answer in answers], scores, atol=1e-5)


def installed(folder: Path, *requirements: str) -> Path:
    """Make a virtual environment with siesta from this checkout, and return the folder of its commands."""
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "constraints.txt"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "siesta", source / "siesta", ignore=shutil.ignore_patterns("__pycache__"))
    venv.create(folder / "venv", with_pip=True)
    binaries = folder / "venv" / "bin"
    pip = [binaries / "pip", "install", "--quiet", "--constraint", source / "constraints.txt"]
    done = subprocess.run(list(map(str, [*pip, *requirements, source])), capture_output=True, text=True)
    if done.returncode and "No matching distribution" in done.stderr + done.stdout:
        pytest.skip(f"packages cannot be installed here: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return binaries


@pytest.mark.slow
def test_an_install_without_extras_learns_and_predicts(tmp_path: Path, pictures: Path) -> None:
    """In a virtual environment that pip made from the declared dependencies."""
    binaries = installed(tmp_path)
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    present = {folder.name for folder in packages.iterdir()}
    assert "onnxruntime" in present and not {"torch", "faiss", "onnx", "onnxscript", "fastapi"} & present

    def siesta(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([binaries / "siesta", *arguments], cwd=tmp_path, capture_output=True, text=True)

    for command in (("new", "x"), ("learn", "x", pictures), ("eval", "x", pictures), ("info", "x"), ("check", "x")):
        done = siesta(*command)
        assert done.returncode == 0, done.stderr
    answers = json.loads(siesta("predict", "x", pictures / "green" / "1.png", "--json").stdout)
    assert answers[0]["label"] == "green"
    for refused, extra in ((("sleep", "x", "--updates", "4"), "sleep"), (("serve", "x"), "serve")):
        done = siesta(*refused)
        assert done.returncode == 3
        assert f"pip install 'siesta-learn[{extra}]'" in " ".join(done.stderr.split())
