"""The command line through its real entry point: what it prints, what it ends with, and never a traceback."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from siesta.augment import explain_augmentations
from siesta.cli import main
from siesta.learner import Siesta
from siesta.policies import explain_policies

SCRIPT = Path(sys.executable).with_name("siesta")
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONWARNINGS": "error",
    "PYTHONIOENCODING": "utf-8",
    "COLUMNS": "100",
}
WITHOUT = shutil.ignore_patterns("*-shm", "*-wal")  # empty in a closed learner
COMMANDS = ["new", "base", "learn", "sleep", "predict", "eval", "info", "serve", "token", "demo"]
ODD_FOLDERS = ["[red]", "deep 深い 'quoted' \"one\"", " padded ", "[bold]x"]
ODD_LABELS = [*ODD_FOLDERS, "[/]", ":bird:"]  # a slash is no folder's name, but may be a label's
FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(["siesta.learner"])  # torch is imported once for all children

Result = subprocess.CompletedProcess[str]
MakePictures = Callable[..., Path]


def siesta(*arguments: str | bytes | Path, before: tuple[str, ...] = ()) -> Result:
    """Runs a command to its end; whatever happens, nobody gets to see a traceback."""
    command = [*before, str(SCRIPT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=ENVIRONMENT, timeout=120)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode != 1, done.stderr
    return done


def _run_main(arguments: list[str], out: str, err: str) -> None:
    warnings.simplefilter("error")
    os.environ.update(ENVIRONMENT)
    for descriptor, file in ((1, out), (2, err)):
        os.dup2(os.open(file, os.O_WRONLY), descriptor)
    sys.argv = ["siesta", *arguments]
    main()


def quickly(*arguments: str | bytes | Path) -> Result:
    """Like `siesta`, but for the script's first line: its `main` in a process that has torch already."""
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        words = [os.fsdecode(argument) for argument in arguments]
        child = FORKSERVER.Process(target=_run_main, args=(words, out.name, err.name))
        child.start()
        child.join()
        done = Result(words, child.exitcode or 0, out.read().decode(), err.read().decode())
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode != 1, done.stderr
    return done


def answer(*arguments: str | bytes | Path, code: int = 0, run: Callable[..., Result] = quickly) -> Any:
    """What a command prints with --json."""
    done = run(*arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def refused(code: int, words: str, *arguments: str | Path, run: Callable[..., Result] = quickly) -> None:
    """A command that ends with `code` and one sentence, and prints no result."""
    done = run(*arguments)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert re.search(words, done.stderr), done.stderr
    assert len([line for line in done.stderr.splitlines() if "error:" in line]) == 1, done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty learner, made by the library; copied, never used itself."""
    path = tmp_path_factory.mktemp("cli") / "made.siesta"
    Siesta.create(path, memory="1MB", image_size=32).close()
    return path


@pytest.fixture(scope="module")
def taught(made: Path) -> Path:
    """A learner that knows odd labels; copied or read, never changed."""
    path = made.with_name("taught.siesta")
    shutil.copytree(made, path)
    rng = np.random.default_rng(0)
    with Siesta.open(path) as learner:
        for number, label in enumerate(ODD_LABELS * 3):
            learner.learn_one(rng.integers(0, 60 * (number % 4) + 60, (32, 32, 3), dtype=np.uint8), label)
    return path


@pytest.fixture
def learner(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "birds.siesta", ignore=WITHOUT))


@pytest.fixture
def knowing(taught: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(taught, tmp_path / "knowing.siesta", ignore=WITHOUT))


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    Image.new("RGB", (50, 40), "red").save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


# -- the tour ----------------------------------------------------------------------------------------------------------


def test_from_nothing_to_a_learner_that_slept(tmp_path: Path, make_pictures: MakePictures) -> None:
    ask = partial(answer, run=siesta)
    path, folder = tmp_path / "birds.siesta", make_pictures(tmp_path / "photos", ["robin", "wren", "tit"], each=5)
    facts = ask("new", path, "--memory", "1MB", "--image-size", "32")
    assert facts["classes"] == []
    assert facts["bytes"]["allowed"] == 1_000_000
    assert facts["backbone"]["image_size"] == 32
    a_sample = facts["bytes"]["a_sample"]
    assert facts["samples"] == {"stored": 0, "capacity": 1_000_000 // a_sample}

    learned = ask("learn", path, folder)
    samples = learned.pop("samples")
    assert learned == {"learned": 15, "known": 0, "unreadable": 0, "skipped": []}
    assert sorted(samples.values()) == list(range(1, 16)) and set(map(Path, samples)) == set(folder.rglob("*.png"))
    again = ask("learn", path, folder)
    assert again == {"learned": 0, "known": 15, "unreadable": 0, "skipped": [], "samples": samples}

    report = ask("sleep", path, "--updates", "20", "--batch-size", "8", "--seed", "3", "--policy", "uniform")
    assert (report["generation"], report["updates"], report["classes"], report["new_classes"]) == (1, 20, 3, 3)
    assert report["settings"]["policy"] == "uniform" and report["settings"]["augment"] is None
    assert report["settings"]["seed"] == 3
    assert not report["interrupted"]

    pictures = [folder / "robin" / "0.png", folder / "wren" / "1.png"]
    answers = ask("predict", path, *pictures, "--top", "2")
    assert [entry["image"] for entry in answers] == [str(file) for file in pictures]
    assert [entry["top"][0]["label"] for entry in answers] == ["robin", "wren"]
    assert all(len(entry["top"]) == 2 for entry in answers)
    assert all(1 >= entry["top"][0]["score"] >= entry["top"][1]["score"] >= 0 for entry in answers)

    scores = ask("eval", path, folder)
    assert scores["n"] == 15
    assert scores["top5"] == 100
    assert scores["per_class"].keys() == {"robin", "wren", "tit"}

    facts = ask("info", path)
    assert {entry["label"]: (entry["taught"], entry["stored"]) for entry in facts["classes"]} == dict.fromkeys(
        ("robin", "wren", "tit"), (5, 5)
    )
    assert facts["bytes"]["a_sample"] == a_sample
    assert facts["bytes"]["used"] == 15 * a_sample
    assert facts["bytes"]["on_disk"] > 10_000_000
    assert facts["codec"]["name"] == "opq"
    assert 0 < facts["codec"]["relative_error"] < 1
    assert [sleep["updates"] for sleep in facts["sleeps"]] == [20]


def test_a_mixed_sleep_by_a_policy_that_looks(knowing: Path) -> None:
    options = ["--updates", "6", "--batch-size", "4", "--policy", "grasp", "--augment", "mixup_cutmix"]
    report = answer("sleep", knowing, *options)
    assert report["updates"] == 6 and report["embedded"] > 0
    assert (report["settings"]["policy"], report["settings"]["augment"]) == ("grasp", "mixup_cutmix")


def test_words_for_people_name_what_they_are_about(tmp_path: Path, make_pictures: MakePictures) -> None:
    path, folder = tmp_path / "my [b]irds", make_pictures(tmp_path / "photos", ["robin", "wren"], each=2)
    done = quickly("new", path, "--image-size", "32")
    assert done.returncode == 0
    assert str(path) in done.stdout
    done = quickly("learn", path, folder)
    assert "Learned 4 pictures, 0 were known already, 0 could not be read" in done.stdout
    done = quickly("sleep", path, "--seconds", "0.5", "--batch-size", "2")
    assert done.returncode == 0
    assert "Generation 1 is in use" in done.stdout.replace("\n", " ")
    done = quickly("eval", path, folder)
    assert re.search(r"all\W+4\W+\d+\.\d", done.stdout)
    done = quickly("info", path)
    assert re.search(r"robin\W+2\W+2", done.stdout)
    assert "4 of" in done.stdout
    assert "efficientnet_lite0" in done.stdout


def test_odd_labels_are_shown_as_they_are(taught: Path, picture: Path, tmp_path: Path) -> None:
    shown = quickly("info", taught)
    assert shown.returncode == 0
    for label in ODD_LABELS:
        assert label.strip() in shown.stdout
    assert {entry["label"] for entry in answer("info", taught)["classes"]} == {label.strip() for label in ODD_LABELS}
    said = quickly("predict", taught, picture, "--top", "9")
    assert said.returncode == 0
    for label in ODD_LABELS:
        assert label.strip() in said.stdout
    for label in [*ODD_FOLDERS, "[bold]never taught"]:
        (tmp_path / "asked" / label).mkdir(parents=True)
        shutil.copy(picture, tmp_path / "asked" / label / "1.png")
    scores = quickly("eval", taught, tmp_path / "asked")
    assert scores.returncode == 0
    for label in ODD_FOLDERS:
        assert label.strip() in scores.stdout
    assert "[bold]never taught" in scores.stderr.replace("\n", "")


def test_odd_labels_are_taught_from_folders(learner: Path, tmp_path: Path, make_pictures: MakePictures) -> None:
    folder = make_pictures(tmp_path / "photos", ODD_FOLDERS, each=1)
    (folder / ODD_FOLDERS[0] / "[red]notes.txt").write_text("no picture")
    done = quickly("learn", learner, folder)
    assert done.returncode == 6
    assert "[red]notes.txt is not a readable picture" in done.stderr
    assert "Learned 4 pictures" in done.stdout


def test_file_names_in_no_encoding_are_printed_all_the_same(taught: Path, tmp_path: Path, picture: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/caf\xe9.png"
    shutil.copy(picture, os.fsdecode(odd))
    (entry,) = answer("predict", taught, odd, run=siesta)
    assert "caf" in entry["image"]
    assert siesta("predict", taught, odd).returncode == 0


# -- done in part ------------------------------------------------------------------------------------------------------


def test_pictures_that_cannot_be_read_are_listed_and_the_rest_is_done(
    learner: Path, tmp_path: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(tmp_path / "photos", ["robin", "wren"], each=2)
    broken = folder / "robin" / "broken.jpg"
    broken.write_bytes(b"\xff\xd8\xff\xe0 not really")
    result = answer("learn", learner, folder, code=6, run=siesta)
    assert {name: result[name] for name in ("learned", "known", "unreadable")} == {
        "learned": 4,
        "known": 0,
        "unreadable": 1,
    }
    assert len(result["skipped"]) == 1
    assert str(broken) in result["skipped"][0]
    assert answer("eval", learner, folder, code=6)["n"] == 4
    good = folder / "robin" / "0.png"
    answers = answer("predict", learner, broken, good, tmp_path / "missing.png", code=6)
    assert [entry["image"] for entry in answers] == [str(good)]
    refused(3, r"broken\.jpg is not a readable picture", "predict", learner, broken)


# -- refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("exists already", []),
        ("no backbone 'resnet'.*efficientnet_lite0", ["--backbone", "resnet"]),
        ("no cut after 99", ["--cut", "99"]),
        ("--base", ["--cut", "3"]),
        ("not a size", ["--memory", "lots"]),
        ("not a size", ["--memory", "-5"]),
        ("at least", ["--memory", "10"]),
        ("32", ["--image-size", "16"]),
        ("-1", ["--image-size", "-1"]),
        ("no space 'outer'.*linear_centred", ["--space", "outer"]),
        ("not a folder", ["--base", "nowhere"]),
        ("seed", ["--seed", "-1"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_new_refuses(made: Path, tmp_path: Path, words: str, options: list[str]) -> None:
    path = tmp_path / "new.siesta" if options else made
    refused(3, words, "new", path, *options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("exactly one", []),
        ("exactly one", ["--updates", "5", "--minutes", "1"]),
        ("25:99.*06:30", ["--until", "25:99"]),
        ("above zero", ["--updates", "-5"]),
        ("above zero", ["--seconds", "0"]),
        ("above zero", ["--minutes", "inf"]),
        ("no policy 'wild'.*balanced_uniform", ["--updates", "5", "--policy", "wild"]),
        ("no augmentation 'blur'.*mixup_cutmix", ["--updates", "5", "--augment", "blur"]),
        ("a batch has 1 to", ["--updates", "5", "--batch-size", "0"]),
        ("rate", ["--updates", "5", "--lr", "-1"]),
        ("seed", ["--updates", "5", "--seed", "-1"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_sleep_refuses(taught: Path, words: str, options: list[str]) -> None:
    files = sorted(taught.rglob("*.safetensors"))
    refused(3, words, "sleep", taught, *options)
    assert sorted(taught.rglob("*.safetensors")) == files


def test_a_learner_that_knows_nothing_says_so(made: Path, picture: Path) -> None:
    refused(3, "not taught anything", "predict", made, picture)
    refused(3, "teach something first", "sleep", made, "--updates", "5")


def test_missing_things_are_named(made: Path, taught: Path, tmp_path: Path, picture: Path) -> None:
    refused(3, "no learner at .*nowhere", "info", tmp_path / "nowhere")
    refused(3, "nowhere is not a folder", "learn", made, tmp_path / "nowhere")
    refused(3, r"no picture at .*nowhere\.png", "predict", taught, tmp_path / "nowhere.png")
    refused(3, "at least one answer", "predict", taught, picture, "--top", "0")
    refused(3, r"photo\.png", "info", picture)
    refused(3, "x", "info", "x" * 300)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["photo.png"]


def test_usage_errors_end_with_2() -> None:
    for arguments in (["nap"], ["new"], ["sleep", "x", "--updates", "many"], ["info", "x", "--colour"]):
        assert siesta(*arguments).returncode == 2


def test_what_is_not_a_learner_is_refused(tmp_path: Path) -> None:
    refused(3, "not a siesta learner", "info", tmp_path, run=siesta)


def test_a_newer_format_ends_with_4(knowing: Path) -> None:
    connection = sqlite3.connect(knowing / "store.sqlite", isolation_level=None)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    refused(4, "format 99.*upgrade", "info", knowing, run=siesta)


def test_damage_ends_with_4_and_names_the_file(knowing: Path, picture: Path) -> None:
    top = knowing / "generations" / "000000" / "top.safetensors"
    top.write_bytes(top.read_bytes()[:1000])
    refused(4, r"top\.safetensors is damaged", "predict", knowing, picture)
    (knowing / "store.sqlite").write_bytes(b"garbage" * 1000)
    refused(4, r"store\.sqlite is damaged", "info", knowing)


def test_a_second_writer_ends_with_5_and_readers_do_not(
    knowing: Path, picture: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(picture.parent / "photos", ["a"], each=1)
    with Siesta.open(knowing) as learner:
        refused(5, f"process {os.getpid()}", "learn", knowing, folder, run=siesta)
        with learner.store.sleeping():
            refused(5, f"process {os.getpid()}", "sleep", knowing, "--updates", "5", run=siesta)
        assert len(answer("predict", knowing, picture)) == 1


def test_a_read_only_disk_can_be_asked_but_not_taught(
    knowing: Path, picture: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(picture.parent / "photos", ["a"], each=1)
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    before = ("unshare", "-m", "sh", "-c", script, str(picture.parent))
    if shutil.which("unshare") is None or subprocess.run([*before, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets us mount nothing")
    run = partial(siesta, before=before)
    refused(7, "cannot be written", "learn", knowing, folder, run=run)
    refused(7, "cannot be written", "new", picture.parent / "new.siesta", "--image-size", "32", run=run)
    done = siesta("predict", knowing, picture, "--json", before=before)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == 1


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------


def interrupted(*arguments: str | Path, when: Callable[[str], bool]) -> tuple[int, str, str]:
    """Runs a command on a terminal-like stderr and presses Ctrl-C once its progress shows `when`."""
    ours, theirs = os.openpty()
    # Ctrl-C may fall between opening a file and entering its `with`: Python closes it then, and warns
    environment = {**ENVIRONMENT, "TERM": "xterm", "PYTHONWARNINGS": "error,ignore::ResourceWarning"}
    child = subprocess.Popen([SCRIPT, *arguments], stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    seen = b""
    pressed = False
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        seen += data
        if not pressed and when(seen.decode("utf-8", "replace")):
            child.send_signal(signal.SIGINT)
            pressed = True
    os.close(ours)
    out, _ = child.communicate(timeout=60)
    words = seen.decode("utf-8", "replace")
    assert pressed, words
    assert "Traceback" not in words
    return child.returncode, out.decode(), words


@pytest.mark.parametrize(("phase", "stored"), [("looking", 0), ("storing", 1), ("training", 320)])
def test_ctrl_c_during_base_initialisation_keeps_what_is_done_and_it_goes_on(
    tmp_path: Path, make_pictures: MakePictures, phase: str, stored: int
) -> None:
    folder = make_pictures(tmp_path / "photos", ["robin", "wren"], each=160)
    path, options = tmp_path / "birds.siesta", ("--image-size", "32", "--epochs", "1", "--batch-size", "8")
    code, out, words = interrupted(
        "base", path, "--data", folder, *options, when=lambda seen: re.search(rf"{phase}\D+[1-9]", seen) is not None
    )
    assert code == 130
    assert "un it again" in out + words
    known = 0
    if phase == "looking":
        assert not path.exists()
    else:
        known = sum(entry["taught"] for entry in answer("info", path)["classes"])
        assert stored <= known <= 320
    result = answer("base", path, "--data", folder, *options)
    assert (result["status"], result["known"], result["learned"]) == ("trained", known, 320 - known)
    assert result["training"]["updates"] == 320


def test_ctrl_c_while_learning_keeps_what_was_learned(
    learner: Path, tmp_path: Path, make_pictures: MakePictures
) -> None:
    folder = make_pictures(tmp_path / "photos", [f"class {number}" for number in range(8)], each=100)
    code, _, words = interrupted(
        "learn", learner, folder, when=lambda seen: re.search(r"(?<!\d)[1-9]\d*/800", seen) is not None
    )
    assert code == 130
    assert "Run it again to go on" in words
    known = sum(entry["taught"] for entry in answer("info", learner)["classes"])
    assert 0 < known < 800
    result = answer("learn", learner, folder)
    assert result["known"] == known
    assert result["learned"] == 800 - known
    assert all(entry["taught"] == 100 for entry in answer("info", learner)["classes"])


def test_ctrl_c_while_asleep_wakes_it_with_what_it_has(knowing: Path, picture: Path) -> None:
    code, out, _ = interrupted("sleep", knowing, "--updates", "1000000", "--json", when=lambda seen: "updates," in seen)
    assert code == 130
    report = json.loads(out)
    assert report["interrupted"]
    assert 0 < report["updates"] < 1_000_000
    facts = answer("info", knowing)
    assert [(sleep["generation"], sleep["interrupted"]) for sleep in facts["sleeps"]] == [(1, True)]
    assert answer("sleep", knowing, "--updates", "8", "--batch-size", "4")["generation"] == 2
    assert len(answer("predict", knowing, picture)) == 1


# -- help --------------------------------------------------------------------------------------------------------------


def test_every_command_has_help_with_an_example() -> None:
    listing = siesta("--help")
    assert listing.returncode == 0
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b", listing.stdout)
        done = siesta(command, "--help")
        assert done.returncode == 0
        assert f"Example: siesta {command}" in done.stdout


def test_sleep_explains_its_policies_and_augmentations() -> None:
    shown = re.sub(r"[\s│]+", " ", siesta("sleep", "--help").stdout)
    assert explain_policies() in shown and explain_augmentations() in shown


def test_without_a_command_it_shows_its_help_and_knows_its_version() -> None:
    assert "Usage" in siesta().stdout
    done = siesta("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"siesta \d+\.\d+\.\d+\S*\n", done.stdout)


@pytest.mark.parametrize("arguments", [["--help"], ["sleep", "--help"], ["--version"]])
def test_help_loads_no_torch(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom siesta.cli import main\nsys.argv = ['siesta', *sys.argv[1:]]\n"
        "try:\n    main()\nfinally:\n    sys.stderr.write(' '.join(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0
    modules = set(done.stderr.split())
    assert "siesta.cli.app" in modules
    assert not modules & {"torch", "faiss", "PIL", "matplotlib", "sklearn"}
