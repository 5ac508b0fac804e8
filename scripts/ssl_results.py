"""Pre-trains by every method on CUB-200's training pictures, measures what it is worth, and writes results/ssl/.

    python -m scripts.ssl_results CUB_200_2011 [--seconds 900] [--image-size 64] [--methods swav,mira] [--work FOLDER]

Every method gets the same seconds. Then top and head are trained over its frozen bottom, once for each of three seeds;
then the best bottom and an untrained one go through SIESTA: a base of 50 classes and three steps of 50. Stopped
anywhere, the same command goes on: weights and learners are in the work folder, rows that are written stay. Processes
with a thread each get more out of the same cores: give them methods of their own and `--parts pretraining,readout`,
and the last one `--parts chain`.

The folder is the data set as it comes, or FOLDER/{train,test}/<class>/*.jpg. `--dataset` takes any other of the
package's readers instead of CUB-200's, for instance SwAV on half of Tiny-ImageNet, which configs/tiny_imagenet.toml
starts from:

    python -m scripts.ssl_results tiny-imagenet-200 --dataset tiny_imagenet --classes 100 --methods swav
        --parts pretraining --work runs/tiny_imagenet_swav --results results/tiny_imagenet
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from rich.console import Console

from scripts.ssl_readout import RANDOM_TOP, UNTRAINED, Readout, readout, seen, settled
from siesta.backbones import RANDOM, make_backbone, save_checkpoint
from siesta.base import initialise
from siesta.data import Dataset, Split, load_dataset
from siesta.errors import BadInput, SiestaError
from siesta.folders import ask, score, teach
from siesta.learner import Siesta
from siesta.pretrain import PRETRAINERS, random_top
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.knn import Questions, knn_accuracy
from siesta.pretrain.loop import Standing
from siesta.pretrain.run import pretrain
from siesta.pretrain.settings import Settings
from siesta.provenance import provenance

RESULTS = Path(__file__).parent.parent / "results" / "ssl"
SEEDS = (0, 1, 2)
RATE = 0.01  # of the chain; the network's own, 0.2, is for one that was trained for days
PARTS = ("pretraining", "readout", "chain")

# What two cores can afford. Barlow Twins and SEED have rates for runs a hundred times as long: here they get higher
# ones, SwAV and MIRA their own. MIRA's targets are sharper than published: with its own a run came to see all pictures
# alike (results/ssl/tried.jsonl). Fewer and narrower where a head would cost more than the network.
AFFORDED: dict[str, dict[str, Any]] = {
    "barlow_twins": {"rate": 0.15, "options": {"width": 2048}},
    "mira": {"options": {"prototypes": 1000, "target_temperature": 0.1}},
    "mira+barlow_twins": {"options": {"prototypes": 1000, "target_temperature": 0.1, "width": 2048}},
    "seed": {"rate": 0.1, "options": {"queue": 4096}},
}

Row = dict[str, Any]
console = Console(soft_wrap=True)


def main() -> None:
    """Pre-training, read-outs, chain; a mistake is a sentence."""
    try:
        _measure()
    except SiestaError as error:
        raise SystemExit(str(error)) from error


def _measure() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dataset", default="cub200", help="what the folder is, by its reader's name")
    parser.add_argument("--seconds", type=float, default=900, help="of training, for each method")
    parser.add_argument("--pretraining-rate", type=float, help="the highest, in place of the methods' own")
    parser.add_argument("--image-size", type=int, default=64)
    parser.add_argument("--backbone", default="mobilenet_v3_large")
    parser.add_argument("--methods", default=",".join(PRETRAINERS))
    parser.add_argument("--parts", default=",".join(PARTS), help="only some of the three")
    parser.add_argument("--classes", type=int, help="only the first so many, to try it")
    parser.add_argument("--readout-epochs", type=int, default=Readout.epochs)
    parser.add_argument("--rate", type=float, default=RATE, help="of the chain, for a batch of 64")
    parser.add_argument("--updates", type=int, default=9600, help="of each sleep of the chain")
    parser.add_argument("--base-epochs", type=int, default=50, help="of the chain")
    parser.add_argument("--base-classes", type=int, default=50, help="of the chain")
    parser.add_argument("--step-classes", type=int, default=50, help="of each of its steps")
    parser.add_argument("--starts", help="of the chain; the best and an untrained one if left out")
    parser.add_argument("--work", type=Path, default=Path("runs") / "ssl")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    names, parts = options.methods.split(","), options.parts.split(",")
    _check_known("method", names, PRETRAINERS)
    _check_known("part", parts, PARTS)
    data = load_dataset(options.dataset, options.folder, classes=options.classes)
    options.work.mkdir(parents=True, exist_ok=True)
    options.results.mkdir(parents=True, exist_ok=True)
    if "pretraining" in parts:
        for name in names:
            _pretrained(name, data, options)
    if "readout" in parts:
        _stood(data, options)
        for name in [*names, *([UNTRAINED, RANDOM_TOP] if "swav" in names else [])]:
            _read_out(name, data, options)
    if "chain" in parts:
        starts = options.starts.split(",") if options.starts else [_best(names, options.results), UNTRAINED]
        _chain(starts, data, options)


def _check_known(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuses now what would be refused after hours."""
    for name in names:
        if name not in known:
            raise BadInput(f"there is no {what} '{name}': choose some of {', '.join(known)}")


def _files(data: Dataset, split: Split) -> list[tuple[Path, str]]:
    """Pictures with the names of their classes."""
    names = (data.classes[label] for label in split.labels.tolist())
    return [(Path(str(picture)), name) for picture, name in zip(split.pictures, names, strict=True)]


def _folder(name: str, files: Iterable[tuple[Path, str]], work: Path) -> Path:
    """These pictures as `FOLDER/<label>/*`, by links."""
    folder = work / name
    for file, label in files:
        link = folder / label / file.name
        if not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file.absolute())
    return folder


def _rows(results: Path, name: str) -> list[Row]:
    file = results / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def _add(results: Path, name: str, row: Row) -> None:
    with (results / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({**row, **provenance()}) + "\n")
    console.print({key: value for key, value in row.items() if key not in ("config", "history")})


def _weights(name: str, data: Dataset, options: argparse.Namespace) -> Path:
    """What a start is made of; fresh tops are made here, if they are not there."""
    file: Path = options.work / f"{name}.safetensors"
    if name in (UNTRAINED, RANDOM_TOP) and not file.exists():
        fresh = (
            make_backbone(options.backbone, 0, weights=RANDOM)
            if name == UNTRAINED
            else random_top(options.backbone, options.work / "swav.safetensors")
        )
        save_checkpoint(settled(fresh, data.train, _how(options), options.work / "copies"), file)
    return file


def _stood(data: Dataset, options: argparse.Namespace) -> None:
    """A row of the network at step 0, if it is not there."""
    if any(row["method"] == UNTRAINED for row in _rows(options.results, "pretraining")):
        return
    network = make_backbone(options.backbone, 0, weights=_weights(UNTRAINED, data, options))
    encoder = Encoder(network.top, network.features, network.scaling, 0)
    row = {
        "bench": "ssl_pretraining",
        "config": {"backbone": options.backbone, "image_size": options.image_size},
        "method": UNTRAINED,
        "knn": knn_accuracy(encoder, Questions(_files(data, data.test), options.image_size)),
    }
    _add(options.results, "pretraining", row)


def _how(options: argparse.Namespace) -> Readout:
    return Readout(options.backbone, options.image_size, options.readout_epochs)


def _pretrained(name: str, data: Dataset, options: argparse.Namespace) -> None:
    """Trains by a method, if its row is not there; a run that is under way goes on."""
    if any(row["method"] == name for row in _rows(options.results, "pretraining")):
        return
    settings = Settings(
        name,
        options.backbone,
        image_size=options.image_size,
        seconds=options.seconds,
        **AFFORDED.get(name, {}) | ({} if options.pretraining_rate is None else {"rate": options.pretraining_rate}),
    )
    train, test = (_folder(part, _files(data, getattr(data, part)), options.work) for part in ("train", "test"))

    def show(standing: Standing) -> None:
        words = f"{name} {100 * standing.fraction:.1f} %, loss {standing.loss:.3f}, {standing.pictures:,} pictures"
        console.print(f"{words}, {standing.pictures_per_second:.1f} a second", end="\r")

    found = pretrain(
        settings,
        train,
        options.work / f"{name}.safetensors",
        labelled=test,
        knn_every=1_000_000,  # before, and at the end
        cache=options.work / "copies",
        on_step=show,
    )
    if found.status == "interrupted":
        raise SystemExit("stopped: the same command goes on")
    losses = [epoch.loss for epoch in found.history if epoch.loss is not None]
    row = {
        "bench": "ssl_pretraining",
        "config": {**asdict(settings), "threads": torch.get_num_threads()},
        "method": name,
        "pictures": found.pictures,
        "epochs": found.epochs,
        "seconds": found.seconds,
        "loss_first": losses[0],
        "loss_last": losses[-1],
        "knn_untrained": found.history[0].knn,
        "knn": found.history[-1].knn,
        "warning": found.warning,
        "watched": found.history[-1].watched,
    }
    _add(options.results, "pretraining", row)


def _read_out(name: str, data: Dataset, options: argparse.Namespace) -> None:
    """Best top-1 accuracy over a frozen bottom, for each seed whose row is not there."""
    how, weights = _how(options), _weights(name, data, options)
    done = {row["config"]["seed"] for row in _rows(options.results, "readout") if row["method"] == name}
    if done.issuperset(SEEDS):
        return
    pictures = seen(weights, data.train, data.test, how, options.work / "copies")
    for seed in (seed for seed in SEEDS if seed not in done):
        found = readout(weights, pictures, len(data.classes), how, seed)
        config = {**asdict(how), "seed": seed}
        row = {"bench": "ssl_readout", "config": config, "method": name, "top1": max(found), "top1_by_epoch": found}
        _add(options.results, "readout", row)


def _best(names: Iterable[str], results: Path) -> str:
    """The self-supervised method with the best mean read-out."""
    rows = _rows(results, "readout")
    measured = {row["method"] for row in rows}
    means = {
        name: mean(row["top1"] for row in rows if row["method"] == name)
        for name in names
        if name in measured and not PRETRAINERS[name].labelled
    }
    if not means:
        raise BadInput(
            "the chain starts from the best read-out, and there is none: run --parts readout, or give --starts"
        )
    return max(means, key=lambda name: means[name])


def _chain(starts: Iterable[str], data: Dataset, options: argparse.Namespace) -> None:
    """A base of the first classes, then steps of SIESTA, from each start."""
    for name in starts:
        path = options.work / f"chain-{name}.siesta"
        base = _folder("base", _taken(data, data.train, 0, options.base_classes), options.work)
        config = {
            "backbone": options.backbone,
            "image_size": options.image_size,
            "updates": options.updates,
            "rate": options.rate,
            "base_epochs": options.base_epochs,
            "base_classes": options.base_classes,
            "step_classes": options.step_classes,
        }
        initialise(
            path,
            base,
            weights=_weights(name, data, options),
            backbone=options.backbone,
            image_size=options.image_size,
            memory="1GB",
            epochs=options.base_epochs,
            rate=options.rate,
        )
        with Siesta.open(path) as learner:
            for step, end in enumerate(range(options.base_classes, len(data.classes) + 1, options.step_classes)):
                row = {"bench": "ssl_chain", "config": config, "start": name, "step": step, "classes": end}
                _chain_step(learner, data, row, options)


def _chain_step(learner: Siesta, data: Dataset, row: Row, options: argparse.Namespace) -> None:
    """Teaches a step's classes, sleeps, and asks about all so far; the base step has slept already."""
    rows = _rows(options.results, "chain")
    if any((old["start"], old["step"]) == (row["start"], row["step"]) for old in rows):
        return
    step, end = row["step"], row["classes"]
    questions = _taken(data, data.test, 0, end)
    before = None
    if step and len(learner.info()["sleeps"]) <= step:
        for _ in teach(learner, _taken(data, data.train, end - options.step_classes, end)):
            pass
        before = score(ask(learner, questions))
        learner.sleep(updates=options.updates, batch_size=32, rate=options.rate / 2)
    after = score(ask(learner, questions))
    for name, found in (("before", before), ("after", after)):
        for k in (1, 5):
            row[f"{name}_top{k}"] = None if found is None else found[f"top{k}"]
    _add(options.results, "chain", row)


def _taken(data: Dataset, split: Split, start: int, end: int) -> list[tuple[Path, str]]:
    """Pictures of some classes."""
    taken = set(data.classes[start:end])
    return [(file, label) for file, label in _files(data, split) if label in taken]


if __name__ == "__main__":
    main()
