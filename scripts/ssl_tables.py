"""Tables of the rows that `scripts.ssl_results` measured: pre-training methods, and the chain from the best one."""

from __future__ import annotations

from statistics import mean, stdev

from scripts.measurement_tables import ROOT, Row, rows_of, table
from scripts.ssl_readout import UNTRAINED

__all__ = ["chain", "distance_from_paper", "pretraining"]

_PAPER_PICTURES = 2000 * 128_000  # epochs of a tenth of ImageNet
_NOT_MEASURED = "Not measured yet: `python -m scripts.ssl_results CUB_200_2011`."


def _rows(name: str) -> list[Row]:
    return rows_of(f"ssl/{name}") if (ROOT / "results" / "ssl" / f"{name}.jsonl").exists() else []


def pretraining() -> str:
    """Return a table with a row for each method: its training, and its read-out compared with an untrained bottom."""
    trained_rows, readout_rows = _rows("pretraining"), _rows("readout")
    if not trained_rows:
        return _NOT_MEASURED
    trained = {row["method"]: row for row in trained_rows}
    accuracies: dict[str, list[float]] = {name: [] for name in trained}
    for row in readout_rows:
        accuracies.setdefault(row["method"], []).append(row["top1"])
    best_first = sorted(accuracies, key=lambda name: -mean(accuracies[name] or [0.0]))
    body = [[name, *_training_cells(trained.get(name)), *_readout_cells(name, accuracies)] for name in best_first]
    header = [
        "method",
        "images seen",
        "epochs",
        "loss, first and last epoch",
        "k-NN, %",
        "best top-1, %",
        "over untrained",
        "every seed better than every untrained one",
    ]
    return f"{table(header, body)}\n\n{_note(trained_rows, readout_rows)}"


def _training_cells(row: Row | None) -> list[str]:
    """Return the cells of a training run."""
    if row is None:
        return ["", "", "", ""]
    if row["method"] == UNTRAINED:
        return ["0", "0", "", f"{row['knn']:.2f}"]
    loss = f"{row['loss_first']:.4g} -> {row['loss_last']:.4g}" + (", collapsed" if row["warning"] else "")
    return [f"{row['pictures']:,}", f"{row['epochs']:.1f}", loss, f"{row['knn']:.2f}"]


def _readout_cells(name: str, accuracies: dict[str, list[float]]) -> list[str]:
    """Return the cells of the read-out over all seeds; empty where it is not measured."""
    own, untrained = accuracies[name], accuracies.get(UNTRAINED)
    if not own or not untrained:
        return ["", "", ""]
    spread = f" ± {stdev(own):.2f}" if len(own) > 1 else ""
    better = "" if name == UNTRAINED else "yes" if min(own) > max(untrained) else "**no**"
    return [f"{mean(own):.2f}{spread}", f"{mean(own) - mean(untrained):+.2f}", better]


def _note(trained_rows: list[Row], readout_rows: list[Row]) -> str:
    example = next(row for row in trained_rows if row["method"] != UNTRAINED)
    first = example["config"]
    budget = f"{first['seconds']:,.0f} s on {first['threads']} thread each"
    how = [f"{first['backbone']}, {first['image_size']} px, {budget}"]
    if readout_rows:
        seeds = {row["config"]["seed"] for row in readout_rows}
        config = readout_rows[0]["config"]
        how.append(
            f"then {config['epochs']} epochs of top and head at learning rate {config['rate']:g}, {len(seeds)} seeds"
        )
    how.append(f"k-NN at step 0 with initial norm statistics is {example['knn_untrained']:.2f} %")
    command = f"`python -m scripts.ssl_results CUB_200_2011`, {trained_rows[0]['date'][:10]}."
    far = [distance_from_paper(row) for row in trained_rows if row["method"] == "swav"]
    return "\n\n".join([f"{'; '.join(how)}. {command}", *far])


def distance_from_paper(swav: Row) -> str:
    """Return a sentence that compares a run of SwAV with the paper's."""
    times = _PAPER_PICTURES / swav["pictures"]
    larger = (224 / swav["config"]["image_size"]) ** 2
    return (
        "The paper trains SwAV for 2,000 epochs of ImageNet's first 100 classes, about 128,000 images of 224 px: "
        f"{float(f'{times:.2g}'):,.0f} times as many images as SwAV saw here, each {larger:.0f} times as large."
    )


def chain() -> str:
    """Return a table of the steps of SIESTA from the best bottom and from an untrained one."""
    rows = _rows("chain")
    if not rows:
        return _NOT_MEASURED
    body = []
    for row in sorted(rows, key=lambda row: (row["start"], row["step"])):
        figures = (row[f"{when}_top{k}"] for when in ("before", "after") for k in (1, 5))
        cells = ("" if value is None else f"{value:.1f}" for value in figures)
        body.append([row["start"], str(row["classes"]), *cells])
    header = ["bottom", "classes so far", "before sleep, top-1 %", "top-5 %", "after sleep, top-1 %", "top-5 %"]
    return f"{table(header, body)}\n\n`python -m scripts.ssl_results CUB_200_2011`, {rows[0]['date'][:10]}."
