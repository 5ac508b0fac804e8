"""Commands that read a learner and never change it: predict, eval, info."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from siesta.cli.options import DataArgument, JsonOption, LabelsOption, PathArgument
from siesta.cli.output import PARTLY_DONE, console, err_console, image_progress, print_json

if TYPE_CHECKING:
    from siesta.learner import LearnerInfo
    from siesta.learner.info import BackboneInfo

__all__ = ["evaluate", "info", "predict"]

ThresholdOption = Annotated[
    float | None, typer.Option(help="Answer 'unknown' when the familiarity is below this value.", min=0, max=1)
]
ErrorRateOption = Annotated[
    float | None,
    typer.Option(
        help="Choose the threshold so that at most this share of answers is wrong, with 95 % confidence; refused where "
        "there are too few held-out samples to show it."
    ),
]


def predict(
    path: PathArgument,
    images: Annotated[list[Path], typer.Argument(help="Images to classify, or .npy or .npz files of vectors.")],
    top: Annotated[int, typer.Option(help="Number of labels to print for each.")] = 5,
    threshold: ThresholdOption = None,
    error_rate: ErrorRateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Classify images, or vectors.

    Example: siesta predict birds.siesta photo.jpg --top 3
    """
    from siesta.errors import BadInput
    from siesta.learner import Siesta
    from siesta.learner.sources import reason_for
    from siesta.learner.vector_files import unlabelled_inputs

    answers: list[dict[str, Any]] = []
    unreadable: list[str] = []
    with Siesta.open(path, read_only=True) as learner:
        for image, given in unlabelled_inputs(learner, images):
            try:
                read = learner.read(given)
            except BadInput as error:
                unreadable.append(reason_for(image, given, error))
                continue
            prediction = learner.predict_one(read, top, threshold=threshold, error_rate=error_rate)
            ranking = [{"label": label, "score": score} for label, score in prediction.top]
            facts = {"label": prediction.label, "known": prediction.known, "familiarity": prediction.familiarity}
            answers.append({"image": str(image), **facts, "top": ranking})
    if unreadable and not answers:
        raise BadInput("; ".join(unreadable))
    if as_json:
        print_json(answers)
    else:
        _print_answers(answers)
    for refusal in unreadable:
        err_console.print(f"skipped: {refusal}", style="yellow")
    if unreadable:
        raise typer.Exit(PARTLY_DONE)


def _print_answers(answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        labels = ", ".join(f"{item['label']} {100 * item['score']:.1f} %" for item in answer["top"])
        console.print(f"{answer['image']}: {labels if answer['known'] else _unknown(answer, labels)}")


def _unknown(answer: dict[str, Any], labels: str) -> str:
    return f"unknown (familiarity {100 * answer['familiarity']:.1f} %; best guess: {labels})"


def evaluate(
    path: PathArgument,
    data: DataArgument,
    labels: LabelsOption = None,
    threshold: ThresholdOption = None,
    error_rate: ErrorRateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure accuracy on labelled images, or vectors.

    Example: siesta eval birds.siesta photos/test --json
    """
    from siesta.learner import Siesta
    from siesta.learner.folders import accuracies, rejection_rates
    from siesta.learner.sources import predict_sources
    from siesta.learner.vector_files import labelled_sources

    answers = []
    with Siesta.open(path, read_only=True) as learner, image_progress() as bar:
        noun = learner.pipeline.input.noun
        sources = labelled_sources(learner, data, labels)
        task = bar.add_task("evaluating", total=len(sources))
        min_score = threshold if error_rate is None else learner.threshold(error_rate)
        for answer in predict_sources(learner, sources):
            answers.append(answer)
            bar.advance(task)
        known_labels = {entry.label for entry in learner.info().classes}
    result = accuracies(answers)
    if min_score is not None:
        result |= {"threshold": min_score, "unknown": rejection_rates(answers, known_labels, min_score)}
    unknown_labels = sorted(set(result["per_class"]) - known_labels)
    if unknown_labels:
        err_console.print(f"never learned, so always wrong: {', '.join(unknown_labels)}", style="yellow")
    for answer in answers:
        if answer.stray:
            err_console.print(f"ignored, not an image: {answer.path}")
    skipped = [answer.reason for answer in answers if answer.reason and not answer.stray]
    for reason in skipped:
        err_console.print(f"skipped: {reason}", style="yellow")
    if as_json:
        print_json(result)
    else:
        _print_scores(result, noun)
    if skipped:
        raise typer.Exit(PARTLY_DONE)


def _print_scores(result: dict[str, Any], noun: str) -> None:
    table = Table("class", f"{noun}s", "top-1 %", "top-5 %")
    rows = [*result["per_class"].items(), ("all", result)]
    for label, scores in rows:
        table.add_row(label, str(scores["n"]), f"{scores['top1']:.1f}", f"{scores['top5']:.1f}")
    console.print(table, soft_wrap=False)
    if "unknown" in result:
        counts = result["unknown"]
        console.print(
            f"{noun.capitalize()}s with a familiarity below {result['threshold']:.3f} are answered 'unknown': "
            f"{_percent(counts['taught_rejected'])} of {counts['taught']:,} {noun}s of learned classes, and "
            f"{_percent(counts['never_taught_rejected'])} of {counts['never_taught']:,} {noun}s of other classes. "
            f"Of the learned classes' {noun}s that are answered, {_percent(counts['right_of_answered'])} are right."
        )


def _percent(percent: float | None) -> str:
    return "none" if percent is None else f"{percent:.1f} %"


def info(path: PathArgument, as_json: JsonOption = False) -> None:
    """Show the classes, memory use, network, codec and sleeps of a learner.

    Example: siesta info birds.siesta
    """
    from siesta.learner import Siesta

    with Siesta.open(path, read_only=True) as learner:
        learner_info = learner.info()
    if as_json:
        print_json(learner_info.as_dict())
        return
    _print_info(learner_info)
    codec = learner_info.codec
    if codec.drifted:
        err_console.print(
            f"The codec fits the recent images badly: its relative error on them is {codec.error_lately:.3f}. "
            f"Fit it again: siesta refit {path} --base FOLDER",
            style="yellow",
        )


def _network(backbone: BackboneInfo) -> str:
    """Return what the network of a learner is, and what it takes."""
    if backbone.features is not None:
        return f"{backbone.name}, vectors of {backbone.features:,} numbers"
    return f"{backbone.name}, cut after {backbone.cut} layers, {backbone.image_size} px"


def _print_info(learner_info: LearnerInfo) -> None:
    from siesta.sleep.binomial import percent_with_interval
    from siesta.store import format_bytes

    size = learner_info.bytes
    backbone = learner_info.backbone
    codec = learner_info.codec
    samples = learner_info.samples
    table = Table("class", "learned", "stored")
    for entry in learner_info.classes:
        table.add_row(entry.label, f"{entry.taught:,}", f"{entry.stored:,}")
    console.print(table, soft_wrap=False)
    lines = {
        "memory": f"{format_bytes(size.used)} of {format_bytes(size.allowed)} used, "
        f"{samples.stored:,} of {samples.capacity:,} samples",
        "on disk": format_bytes(size.on_disk),
        "backbone": f"{_network(backbone)}, {backbone.space.replace('_', ', ')} features",
        "codec": f"{codec.name}, relative error {codec.relative_error:.3f}",
        "sleeps": str(len(learner_info.sleeps)),
    }
    if learner_info.sleeps:
        last = learner_info.sleeps[-1]
        lines["last"] = f"{last['made']}, {last['updates']:,} updates in {last['seconds']:.1f} s"
        if last.get("held_out"):
            accuracy = percent_with_interval(last["accuracy_after"], last["held_out"])
            lines["held out"] = f"{accuracy} of {last['held_out']:,} samples right after it"
    lines["sleep"] = learner_info.sleep_need.summary()
    for name, text in lines.items():
        console.print(f"{name:>9}: {text}")
