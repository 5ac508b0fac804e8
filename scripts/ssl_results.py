"""Pre-train by every method on CUB-200's training pictures, evaluate the weights, and write results/ssl/.

    python -m scripts.ssl_results CUB_200_2011 [--seconds 900] [--image-size 64] [--methods swav,mira] [--work FOLDER]

Every method trains for the same number of seconds. Then top and head are trained over its frozen bottom with each of
three seeds (read-out). Then SIESTA learns from the best bottom and from an untrained one: a base of 50 classes and
three steps of 50 (chain). The same command resumes an interrupted run: weights and learners are in the work folder, and
rows that are written are not computed again. Several processes with one thread each use the cores best: give each of
them some of the methods and `--parts pretraining,readout`, and run `--parts chain` at the end.

The folder is the published data set, or FOLDER/{train,test}/<class>/*.jpg. `--dataset` selects another of the package's
readers, for instance for SwAV on half of Tiny-ImageNet, whose weights configs/tiny_imagenet.toml uses:

    python -m scripts.ssl_results tiny-imagenet-200 --dataset tiny_imagenet --classes 100 --methods swav
        --parts pretraining --work runs/tiny_imagenet_swav --results results/tiny_imagenet
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from scripts.ssl_chain import best_method, run_chain
from scripts.ssl_readout import (
    RANDOM_TOP,
    UNTRAINED,
    ReadoutSettings,
    encode_pictures,
    readout_accuracies,
    recalibrate_norms,
)
from scripts.ssl_rows import Row, add_row, console, link_pictures, picture_labels, read_rows
from siesta.backbones import RANDOM, make_backbone, save_checkpoint
from siesta.data import Dataset, load_dataset
from siesta.errors import BadInput, SiestaError
from siesta.pretrain import PRETRAINERS, random_top
from siesta.pretrain.encoder import Encoder
from siesta.pretrain.knn import KnnPictures, knn_accuracy
from siesta.pretrain.loop import PretrainStatus
from siesta.pretrain.result import PretrainResult
from siesta.pretrain.run import pretrain
from siesta.pretrain.settings import PretrainSettings

RESULTS = Path(__file__).parent.parent / "results" / "ssl"
SEEDS = (0, 1, 2)
CHAIN_LR = 0.01  # the network's own, 0.2, is for one that was trained for days
PARTS = ("pretraining", "readout", "chain")
_NEVER = 1_000_000  # epochs between k-NN measurements: only before training and at its end

# What two cores can compute. The learning rates of Barlow Twins and SEED are for runs a hundred times as long, so they
# get higher ones here; SwAV and MIRA keep their own. The targets of MIRA are sharper than published: with its own, a
# run collapsed (results/ssl/tried.jsonl). Heads are smaller where they would cost more than the network.
REDUCED_SETTINGS: dict[str, dict[str, Any]] = {
    "barlow_twins": {"lr": 0.15, "options": {"width": 2048}},
    "mira": {"options": {"prototypes": 1000, "target_temperature": 0.1}},
    "mira+barlow_twins": {"options": {"prototypes": 1000, "target_temperature": 0.1, "width": 2048}},
    "seed": {"lr": 0.1, "options": {"queue": 4096}},
}


def main() -> None:
    """Run the parts that the command line selects; report errors as one line."""
    try:
        _run(_parser().parse_args())
    except SiestaError as error:
        raise SystemExit(str(error)) from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dataset", default="cub200", help="name of the reader for the folder")
    parser.add_argument("--seconds", type=float, default=900, help="seconds of training for each method")
    parser.add_argument("--pretraining-rate", type=float, help="highest learning rate of all methods")
    parser.add_argument("--image-size", type=int, default=64)
    parser.add_argument("--backbone", default="mobilenet_v3_large")
    parser.add_argument("--methods", default=",".join(PRETRAINERS.own))
    parser.add_argument("--parts", default=",".join(PARTS), help="parts to run")
    parser.add_argument("--classes", type=int, help="number of classes to use, the first ones")
    parser.add_argument("--readout-epochs", type=int, default=ReadoutSettings.epochs)
    parser.add_argument("--rate", type=float, default=CHAIN_LR, help="learning rate of the chain for a batch of 64")
    parser.add_argument("--updates", type=int, default=9600, help="updates of each sleep of the chain")
    parser.add_argument("--base-epochs", type=int, default=50, help="epochs of the chain's base initialisation")
    parser.add_argument("--base-classes", type=int, default=50, help="classes of the chain's base")
    parser.add_argument("--step-classes", type=int, default=50, help="classes of each step of the chain")
    parser.add_argument("--starts", help="initial weights of the chain; by default the best and an untrained network")
    parser.add_argument("--work", type=Path, default=Path("runs") / "ssl")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser


def _run(options: argparse.Namespace) -> None:
    names, parts = options.methods.split(","), options.parts.split(",")
    _check_known("method", names, PRETRAINERS)
    _check_known("part", parts, PARTS)
    data = load_dataset(options.dataset, options.folder, classes=options.classes)
    options.work.mkdir(parents=True, exist_ok=True)
    options.results.mkdir(parents=True, exist_ok=True)
    if "pretraining" in parts:
        for name in names:
            _pretrain(name, data, options)
    if "readout" in parts:
        _measure_untrained(data, options)
        for name in [*names, *([UNTRAINED, RANDOM_TOP] if "swav" in names else [])]:
            _read_out(name, data, options)
    if "chain" in parts:
        starts = options.starts.split(",") if options.starts else [best_method(names, options.results), UNTRAINED]
        run_chain(starts, data, options, lambda name: _weights(name, data, options))


def _check_known(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise BadInput for an unknown name before hours of training."""
    for name in names:
        if name not in known:
            raise BadInput(f"there is no {kind} '{name}': choose some of {', '.join(known)}")


def _weights(name: str, data: Dataset, options: argparse.Namespace) -> Path:
    """Return the file of weights of a method; write random weights first where they do not exist."""
    file: Path = options.work / f"{name}.safetensors"
    if name in (UNTRAINED, RANDOM_TOP) and not file.exists():
        network = (
            make_backbone(options.backbone, 0, weights=RANDOM)
            if name == UNTRAINED
            else random_top(options.backbone, options.work / "swav.safetensors")
        )
        cache = options.work / "copies"
        save_checkpoint(recalibrate_norms(network, data.train, _readout_settings(options), cache), file)
    return file


def _measure_untrained(data: Dataset, options: argparse.Namespace) -> None:
    """Add a row of the network at step 0, if there is none."""
    if any(row["method"] == UNTRAINED for row in read_rows(options.results, "pretraining")):
        return
    network = make_backbone(options.backbone, 0, weights=_weights(UNTRAINED, data, options))
    encoder = Encoder(network.top, network.features, network.normalization, 0)
    row = {
        "bench": "ssl_pretraining",
        "config": {"backbone": options.backbone, "image_size": options.image_size},
        "method": UNTRAINED,
        "knn": knn_accuracy(encoder, KnnPictures(picture_labels(data, data.test), options.image_size)),
    }
    add_row(options.results, "pretraining", row)


def _readout_settings(options: argparse.Namespace) -> ReadoutSettings:
    return ReadoutSettings(options.backbone, options.image_size, options.readout_epochs)


def _pretrain(name: str, data: Dataset, options: argparse.Namespace) -> None:
    """Train by a method, if it has no row; an interrupted run is resumed."""
    if any(row["method"] == name for row in read_rows(options.results, "pretraining")):
        return
    given = {} if options.pretraining_rate is None else {"lr": options.pretraining_rate}
    settings = PretrainSettings(
        name,
        options.backbone,
        image_size=options.image_size,
        seconds=options.seconds,
        **{**REDUCED_SETTINGS.get(name, {}), **given},
    )
    train = link_pictures("train", picture_labels(data, data.train), options.work)
    test = link_pictures("test", picture_labels(data, data.test), options.work)

    def show(status: PretrainStatus) -> None:
        line = f"{name} {100 * status.fraction:.1f} %, loss {status.loss:.3f}, {status.pictures:,} pictures"
        console.print(f"{line}, {status.pictures_per_second:.1f} a second", end="\r")

    result = pretrain(
        settings,
        train,
        options.work / f"{name}.safetensors",
        labelled=test,
        knn_every=_NEVER,
        cache=options.work / "copies",
        on_step=show,
    )
    if result.status == "interrupted":
        raise SystemExit("interrupted: run the same command to resume")
    add_row(options.results, "pretraining", _pretraining_row(settings, result))


def _pretraining_row(settings: PretrainSettings, result: PretrainResult) -> Row:
    losses = [epoch.loss for epoch in result.history if epoch.loss is not None]
    config = {"rate" if name == "lr" else name: value for name, value in asdict(settings).items()}  # the key of rows
    return {
        "bench": "ssl_pretraining",
        "config": {**config, "threads": torch.get_num_threads()},
        "method": settings.method,
        "pictures": result.pictures,
        "epochs": result.epochs,
        "seconds": result.seconds,
        "loss_first": losses[0],
        "loss_last": losses[-1],
        "knn_untrained": result.history[0].knn,
        "knn": result.history[-1].knn,
        "warning": result.warning,
        "watched": result.history[-1].watched,
    }


def _read_out(name: str, data: Dataset, options: argparse.Namespace) -> None:
    """Add a row with the best top-1 accuracy over a frozen bottom for each seed that has none."""
    settings, weights = _readout_settings(options), _weights(name, data, options)
    done = {row["config"]["seed"] for row in read_rows(options.results, "readout") if row["method"] == name}
    if done.issuperset(SEEDS):
        return
    latents = encode_pictures(weights, data.train, data.test, settings, options.work / "copies")
    for seed in (seed for seed in SEEDS if seed not in done):
        accuracies = readout_accuracies(weights, latents, len(data.classes), settings, seed)
        row = {
            "bench": "ssl_readout",
            "config": {**settings.row_config(), "seed": seed},
            "method": name,
            "top1": max(accuracies),
            "top1_by_epoch": accuracies,
        }
        add_row(options.results, "readout", row)


if __name__ == "__main__":
    main()
