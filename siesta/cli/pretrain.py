"""siesta pretrain: weights from anyone's pictures, with or without labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from siesta.cli.learner import JsonOption
from siesta.cli.output import DONE_IN_PART, INTERRUPTED, console, errors, print_json, staging

if TYPE_CHECKING:
    from siesta.pretrain.loop import Standing
    from siesta.pretrain.result import Pretrained

__all__ = ["pretrain"]

_RANDOM = "random"
_FOR_RANDOM = {"method", "--out", "--backbone", "--weights", "--json"}


def pretrain(
    context: typer.Context,
    method: Annotated[
        str,
        typer.Argument(
            help="swav, barlow_twins, mira, seed, mira+barlow_twins, swav+essl, swav+seal, supervised, or random "
            "(weights of a file below the cut, fresh ones above it)."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The file of weights to write; for --weights of other commands.")],
    data: Annotated[Path | None, typer.Option(help="Pictures anywhere below; supervised: FOLDER/<label>/*.")] = None,
    backbone: Annotated[str, typer.Option(help="The network.")] = "mobilenet_v3_large",
    weights: Annotated[str, typer.Option(help="What to start from: random, published, or a file.")] = _RANDOM,
    image_size: Annotated[int, typer.Option(help="Side in pixels of the largest crops.")] = 224,
    epochs: Annotated[int | None, typer.Option(help="Passes over the pictures; 2000 if nothing is said.")] = None,
    seconds: Annotated[float | None, typer.Option(help="How long to train, in place of epochs.")] = None,
    batch_size: Annotated[int, typer.Option(help="Pictures a step, over all processes.")] = 64,
    lr: Annotated[float | None, typer.Option(help="Highest learning rate; the method's own if left out.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the method, like prototypes=300.")
    ] = None,
    knn: Annotated[Path | None, typer.Option(help="Pictures as FOLDER/<label>/* to measure k-NN accuracy on.")] = None,
    knn_every: Annotated[int, typer.Option(help="Epochs between two such measurements.")] = 10,
    cache: Annotated[Path | None, typer.Option(help="Where small copies of pictures are kept.")] = None,
    workers: Annotated[int, typer.Option(help="Threads that cut crops.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the method's weights, orders and crops.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Train a whole network on a folder of pictures; run again, it goes on where it stopped.

    Example: siesta pretrain swav --data photos --out swav.safetensors --epochs 200
    """
    from siesta.errors import BadInput
    from siesta.pretrain import ranks
    from siesta.pretrain.run import pretrain as trained
    from siesta.pretrain.settings import Settings

    if method == _RANDOM:
        _random(backbone, weights, out, as_json, _given(context) - _FOR_RANDOM)
        return
    if data is None:
        raise BadInput(f"{method} learns from pictures: give a folder of them as --data")
    settings = Settings(
        method=method,
        backbone=backbone,
        weights=weights,
        image_size=image_size,
        epochs=epochs,
        seconds=seconds,
        batch_size=batch_size,
        rate=lr,
        seed=seed,
        options=dict(_option(change) for change in changes or ()),
    )
    speaks = ranks.speaks()
    with staging() as bar:
        task = bar.add_task("copying pictures", total=1.0, words="", visible=speaks)

        def show_copy(done: int, every: int) -> None:
            bar.update(task, completed=done / every, words=f"{done:,} of {every:,}")

        def show(standing: Standing) -> None:
            bar.update(task, description=method, completed=standing.fraction, words=_progress(standing))

        result = trained(
            settings,
            data,
            out,
            labelled=knn,
            knn_every=knn_every,
            cache=cache,
            workers=workers,
            on_copy=show_copy,
            on_step=show,
        )
    if speaks:
        _tell(result, out, backbone, as_json)
    if result.status == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if result.skipped and not ranks.several():  # torchrun would take that for a crash
        raise typer.Exit(DONE_IN_PART)


def _given(context: typer.Context) -> set[str]:
    """Arguments and options that stand in the command itself."""
    every = {parameter.name or "": parameter.opts[0] for parameter in context.command.params}
    return {option for name, option in every.items() if _is_said(context, name)}


def _is_said(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _random(backbone: str, weights: str, out: Path, as_json: bool, useless: set[str]) -> None:
    from siesta.backbones import checkpoint_bytes
    from siesta.errors import BadInput
    from siesta.pretrain import random_top, ranks
    from siesta.pretrain.result import ResultFile
    from siesta.store.files import replace_file

    if useless:
        raise BadInput(f"random trains nothing: leave out {', '.join(sorted(useless))}")
    if weights == _RANDOM:
        raise BadInput("random keeps a trained bottom: give the file that has it as --weights")
    if not ranks.speaks():
        return
    with ResultFile(out).alone():
        if out.exists():
            raise BadInput(f"{out} exists already: choose another name or remove it first")
        replace_file(out, checkpoint_bytes(random_top(backbone, weights)))
    if as_json:
        print_json({"status": "made", "out": str(out), "weights": weights})
    else:
        console.print(f"Wrote {out}: the bottom of {weights} under a fresh top. {_use(out, backbone)}")


def _option(change: str) -> tuple[str, Any]:
    """A name and a value, a number where it looks like one."""
    from siesta.errors import BadInput

    name, sign, value = change.partition("=")
    if not (name and sign):
        raise BadInput(f"'{change}' sets nothing: write it like prototypes=300")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _progress(standing: Standing) -> str:
    minutes, seconds = divmod(round(standing.seconds_left), 60)
    words = (
        f"epoch {standing.epoch:.1f}, loss {standing.loss:.3f}, {standing.pictures_per_second:.1f} pictures/s, "
        f"{minutes}:{seconds:02d} left"
    )
    return words if standing.warning is None else f"{words}; {standing.warning}"


def _tell(result: Pretrained, out: Path, backbone: str, as_json: bool) -> None:
    """What was done, for people or programs."""
    from dataclasses import asdict

    for reason in result.skipped:
        errors.print(f"skipped: {reason}", style="yellow")
    if result.warning:
        errors.print(result.warning, style="yellow")
    if as_json:
        print_json(asdict(result))
    else:
        console.print(_words(result, out, backbone))


def _use(out: Path, backbone: str) -> str:
    return f"Use it: siesta new LEARNER --backbone {backbone} --weights {out} --base FOLDER"


def _words(result: Pretrained, out: Path, backbone: str) -> str:
    if result.status == "known":
        return f"{out} was made so already; nothing was changed."
    losses = [epoch.loss for epoch in result.history if epoch.loss is not None]
    asked = [epoch.knn for epoch in result.history if epoch.knn is not None]
    loss = f", loss {losses[0]:.3f} -> {losses[-1]:.3f}" if losses else ""
    knn = f", k-NN {asked[0]:.1f} -> {asked[-1]:.1f} %" if asked else ""
    seen = f"{result.pictures:,} pictures in {result.seconds:.0f} s, {result.epochs:.1f} epochs{loss}{knn}"
    if result.status == "interrupted":
        return f"Stopped after {seen}. Run it again to go on."
    return f"Wrote {out}: {seen}. {_use(out, backbone)}"
