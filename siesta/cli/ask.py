"""Commands that only look: predict, eval, info."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from siesta.cli.learner import JsonOption, PathArgument
from siesta.cli.output import DONE_IN_PART, console, counting, errors, print_json

__all__ = ["evaluate", "info", "predict"]

ThresholdOption = Annotated[float | None, typer.Option(help="Below this score the answer is unknown.", min=0, max=1)]
ErrorRateOption = Annotated[
    float | None, typer.Option(help="The same, at the score that keeps errors on held-out samples below this share.")
]


def predict(
    path: PathArgument,
    images: Annotated[list[Path], typer.Argument(help="Pictures to ask about.")],
    top: Annotated[int, typer.Option(help="How many answers for each.")] = 5,
    threshold: ThresholdOption = None,
    error_rate: ErrorRateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask about pictures; never changes the learner.

    Example: siesta predict birds.siesta photo.jpg --top 3
    """
    from siesta.errors import BadInput
    from siesta.learner import Siesta

    answers: list[dict[str, Any]] = []
    failed: list[BadInput] = []
    with Siesta.open(path, read_only=True) as learner:
        for image in images:
            try:
                pixels = learner.read(image)
            except BadInput as error:
                failed.append(error)
                continue
            found = learner.predict_one(pixels, top, threshold=threshold, error_rate=error_rate)
            best = [{"label": name, "score": value} for name, value in found.top]
            answers.append({"image": str(image), "label": found.label, "known": found.known, "top": best})
    if failed and not answers:
        raise BadInput("; ".join(map(str, failed)))
    if as_json:
        print_json(answers)
    else:
        for answer in answers:
            words = ", ".join(f"{item['label']} {100 * item['score']:.1f} %" for item in answer["top"])
            console.print(f"{answer['image']}: {words if answer['known'] else f'unknown (perhaps {words})'}")
    for failure in failed:
        errors.print(f"skipped: {failure}", style="yellow")
    if failed:
        raise typer.Exit(DONE_IN_PART)


def evaluate(
    path: PathArgument,
    folder: Annotated[Path, typer.Argument(help="Pictures as FOLDER/<label>/*.")],
    threshold: ThresholdOption = None,
    error_rate: ErrorRateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure accuracy on a folder of labelled pictures; never changes the learner.

    Example: siesta eval birds.siesta photos/test --json
    """
    from siesta.folders import ask, checked_files, rejections, score
    from siesta.learner import Siesta

    files = checked_files(folder)
    answers = []
    with Siesta.open(path, read_only=True) as learner, counting() as bar:
        task = bar.add_task("asking", total=len(files))
        least = threshold if error_rate is None else learner.threshold(error_rate)
        for answer in ask(learner, files):
            answers.append(answer)
            bar.advance(task)
        taught = {entry["label"] for entry in learner.info()["classes"]}
    result = score(answers)
    if least is not None:
        result |= {"threshold": least, "unknown": rejections(answers, taught, least)}
    untaught = sorted(set(result["per_class"]) - taught)
    if untaught:
        errors.print(f"never taught, so always wrong: {', '.join(untaught)}", style="yellow")
    skipped = [answer.reason for answer in answers if answer.reason]
    for reason in skipped:
        errors.print(f"skipped: {reason}", style="yellow")
    if as_json:
        print_json(result)
    else:
        _show_scores(result)
    if skipped:
        raise typer.Exit(DONE_IN_PART)


def _show_scores(result: dict[str, Any]) -> None:
    table = Table("class", "pictures", "top-1 %", "top-5 %")
    rows = [*result["per_class"].items(), ("all", result)]
    for label, scores in rows:
        table.add_row(label, str(scores["n"]), f"{scores['top1']:.1f}", f"{scores['top5']:.1f}")
    console.print(table, soft_wrap=False)
    if "unknown" in result:
        some = result["unknown"]
        console.print(
            f"Below a score of {result['threshold']:.3f} it does not answer: {_share(some['taught_rejected'])} of "
            f"{some['taught']:,} pictures of classes it was taught, {_share(some['never_taught_rejected'])} of "
            f"{some['never_taught']:,} of others. Of what it answers of the former {_share(some['right_of_answered'])} "
            "is right."
        )


def _share(percent: float | None) -> str:
    return "none" if percent is None else f"{percent:.1f} %"


def info(path: PathArgument, as_json: JsonOption = False) -> None:
    """Show what a learner knows, what it costs and what it is made of.

    Example: siesta info birds.siesta
    """
    from siesta.learner import Siesta
    from siesta.store import format_bytes

    with Siesta.open(path, read_only=True) as learner:
        facts = learner.info()
    if as_json:
        print_json(facts)
        return
    size, backbone, codec = facts["bytes"], facts["backbone"], facts["codec"]
    table = Table("class", "taught", "stored")
    for entry in facts["classes"]:
        table.add_row(entry["label"], f"{entry['taught']:,}", f"{entry['stored']:,}")
    console.print(table, soft_wrap=False)
    lines = {
        "memory": f"{format_bytes(size['used'])} of {format_bytes(size['allowed'])} used, "
        f"{facts['samples']['stored']:,} of {facts['samples']['capacity']:,} samples",
        "on disk": format_bytes(size["on_disk"]),
        "backbone": f"{backbone['name']}, cut after {backbone['cut']} layers, {backbone['image_size']} px, "
        f"{backbone['space'].replace('_', ', ')} features",
        "codec": f"{codec['name']}, relative error {codec['relative_error']:.3f}",
        "sleeps": str(len(facts["sleeps"])),
    }
    for name, words in lines.items():
        console.print(f"{name:>9}: {words}")
    if codec["drifted"]:
        errors.print(
            f"The codec does not suit what is taught lately: its relative error is {codec['error_lately']:.3f} there. "
            "Fit it anew: siesta refit PATH --base FOLDER",
            style="yellow",
        )
    if facts["sleeps"]:
        last = facts["sleeps"][-1]
        words = f"{last['made']}, {last['updates']:,} updates in {last['seconds']:.1f} s"
        console.print(f"     last: {words}")
