"""siesta pretrain: train the weights of a network on a folder of images, with or without labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand

from siesta.cli.options import JsonOption, parse_part_options
from siesta.cli.output import INTERRUPTED, PARTLY_DONE, console, err_console, experiment_progress, print_json
from siesta.extras import require_torch

if TYPE_CHECKING:
    from siesta.pretrain.loop import PretrainStatus
    from siesta.pretrain.result import PretrainResult
    from siesta.pretrain.settings import PretrainSettings

__all__ = ["PretrainCommand", "pretrain"]

_RANDOM = "random"
_OPTIONS_OF_RANDOM = {"method", "--out", "--backbone", "--weights", "--json"}

MethodArgument = Annotated[str, typer.Argument(help="How to train.")]
DataOption = Annotated[Path | None, typer.Option(help="Folder with images at any depth; supervised: FOLDER/<label>/*.")]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="Option of the method, such as prototypes=300.")]


class PretrainCommand(TyperCommand):
    """The command, whose help lists the methods; they load torch, which the help of other commands does not need."""

    def get_help(self, ctx: Any) -> str:
        """Return the help text."""
        require_torch("pre-training")
        from siesta.pretrain import PRETRAINERS

        (method,) = (parameter for parameter in self.params if isinstance(parameter, TyperArgument))
        method.help = f"{', '.join(PRETRAINERS)} or random (the weights of a file below the cut, random ones above it)."
        return super().get_help(ctx)


def pretrain(
    context: typer.Context,
    method: MethodArgument,
    out: Annotated[Path, typer.Option(help="File of weights to write, for --weights of other commands.")],
    data: DataOption = None,
    backbone: Annotated[str, typer.Option(help="Network to train.")] = "mobilenet_v3_large",
    weights: Annotated[str, typer.Option(help="Initial weights: random, published, or a file.")] = _RANDOM,
    image_size: Annotated[int, typer.Option(help="Side of the largest crops in pixels.")] = 224,
    epochs: Annotated[int | None, typer.Option(help="Passes over the images; 2000 by default.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Seconds to train, instead of epochs.")] = None,
    batch_size: Annotated[int, typer.Option(help="Images in a batch, over all processes.")] = 64,
    lr: Annotated[float | None, typer.Option(help="Highest learning rate; the method's own by default.")] = None,
    changes: SetOption = None,
    knn: Annotated[Path | None, typer.Option(help="Images as FOLDER/<label>/* to measure k-NN accuracy on.")] = None,
    knn_every: Annotated[int, typer.Option(help="Epochs between two k-NN measurements.")] = 10,
    cache: Annotated[Path | None, typer.Option(help="Folder for reduced copies of the images.")] = None,
    workers: Annotated[int, typer.Option(help="Threads that prepare crops.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of initial weights, order of images and crops.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Train a whole network on a folder of images; the same command resumes an interrupted run.

    Example: siesta pretrain swav --data photos --out swav.safetensors --epochs 200
    """
    require_torch("pre-training")
    from siesta.errors import BadInput
    from siesta.pretrain.settings import PretrainSettings

    if method == _RANDOM:
        _write_random_top(backbone, weights, out, as_json, _given_options(context) - _OPTIONS_OF_RANDOM)
        return
    if data is None:
        raise BadInput(f"{method} needs images: give a folder of them as --data")
    settings = PretrainSettings(
        method=method,
        backbone=backbone,
        weights=weights,
        image_size=image_size,
        epochs=epochs,
        seconds=seconds,
        batch_size=batch_size,
        lr=lr,
        seed=seed,
        options=parse_part_options(changes),
    )
    result = _train_with_progress_bar(
        settings, data, out, labelled=knn, knn_every=knn_every, cache=cache, workers=workers
    )
    _print_result(result, out, backbone, as_json)
    _exit(result)


def _exit(result: PretrainResult) -> None:
    """Exit with the code of a result that is not complete."""
    from siesta.pretrain import distributed

    if result.status == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if result.skipped and not distributed.is_multi_process():  # torchrun would report a crash
        raise typer.Exit(PARTLY_DONE)


def _train_with_progress_bar(settings: PretrainSettings, data: Path, out: Path, **options: Any) -> PretrainResult:
    from siesta.pretrain import distributed
    from siesta.pretrain.run import pretrain as run_pretraining

    with experiment_progress() as bar:
        task = bar.add_task("copying images", total=1.0, text="", visible=distributed.is_main_process())

        def show_copies(done: int, total: int) -> None:
            bar.update(task, completed=done / total, text=f"{done:,} of {total:,}")

        def show_step(status: PretrainStatus) -> None:
            bar.update(task, description=settings.method, completed=status.fraction, text=_status_line(status))

        return run_pretraining(settings, data, out, on_copy=show_copies, on_step=show_step, **options)


def _given_options(context: typer.Context) -> set[str]:
    """Return the arguments and options that are given on the command line."""
    names = {parameter.name or "": parameter.opts[0] for parameter in context.command.params}
    return {option for name, option in names.items() if _is_given(context, name)}


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _write_random_top(backbone: str, weights: str, out: Path, as_json: bool, unsupported: set[str]) -> None:
    from siesta.backbones import checkpoint_bytes
    from siesta.errors import BadInput
    from siesta.files import replace_file
    from siesta.pretrain import distributed, random_top
    from siesta.pretrain.result import OutputFile

    if unsupported:
        raise BadInput(f"random does not train: remove {', '.join(sorted(unsupported))}")
    if weights == _RANDOM:
        raise BadInput("random keeps a trained bottom: give the file of its weights as --weights")
    if not distributed.is_main_process():
        return
    with OutputFile(out).locked():
        if out.exists():
            raise BadInput(f"{out} exists already: choose another name or remove it first")
        replace_file(out, checkpoint_bytes(random_top(backbone, weights)))
    if as_json:
        print_json({"status": "made", "out": str(out), "weights": weights})
    else:
        console.print(f"Wrote {out}: the bottom of {weights} under a random top. {_next_command(out, backbone)}")


def _status_line(status: PretrainStatus) -> str:
    minutes, seconds = divmod(round(status.seconds_left), 60)
    line = (
        f"epoch {status.epoch:.1f}, loss {status.loss:.3f}, {status.pictures_per_second:.1f} images/s, "
        f"{minutes}:{seconds:02d} left"
    )
    return line if status.warning is None else f"{line}; {status.warning}"


def _print_result(result: PretrainResult, out: Path, backbone: str, as_json: bool) -> None:
    from dataclasses import asdict

    from siesta.pretrain import distributed

    if not distributed.is_main_process():
        return
    for reason in result.skipped:
        err_console.print(f"skipped: {reason}", style="yellow")
    if result.warning:
        err_console.print(result.warning, style="yellow")
    if as_json:
        print_json(asdict(result))
    else:
        console.print(_summary(result, out, backbone))


def _next_command(out: Path, backbone: str) -> str:
    return f"Use it: siesta new LEARNER --backbone {backbone} --weights {out} --base FOLDER"


def _summary(result: PretrainResult, out: Path, backbone: str) -> str:
    if result.status == "known":
        return f"{out} was written by the same run before; nothing was changed."
    losses = [epoch.loss for epoch in result.history if epoch.loss is not None]
    accuracies = [epoch.knn for epoch in result.history if epoch.knn is not None]
    loss = f", loss {losses[0]:.3f} -> {losses[-1]:.3f}" if losses else ""
    knn = f", k-NN {accuracies[0]:.1f} -> {accuracies[-1]:.1f} %" if accuracies else ""
    done = f"{result.pictures:,} images in {result.seconds:.0f} s, {result.epochs:.1f} epochs{loss}{knn}"
    if result.status == "interrupted":
        return f"Stopped after {done}. Run the same command to resume."
    return f"Wrote {out}: {done}. {_next_command(out, backbone)}"
