"""Tables of what `scripts.ssl_results` measured: ways of pre-training, and the chain from the best of them."""

from __future__ import annotations

from statistics import mean, stdev

from scripts.measured import ROOT, Row, rows_of, table
from scripts.ssl_readout import RANDOM_TOP, UNTRAINED
from siesta.pretrain import PRETRAINERS

__all__ = ["chain", "distance", "pretraining"]

_IN_THE_PAPER = 2000 * 128_000  # epochs of a tenth of ImageNet
_NOT_YET = "Not measured yet: `python -m scripts.ssl_results CUB_200_2011`."


def _measured(name: str) -> list[Row]:
    return rows_of(f"ssl/{name}") if (ROOT / "results" / "ssl" / f"{name}.jsonl").exists() else []


def pretraining() -> str:
    """A row for each start: what it saw, and what its bottom is worth beside an untrained one."""
    trained, read = _measured("pretraining"), _measured("readout")
    if not trained:
        return _NOT_YET
    seen = {row["method"]: row for row in trained}
    tops: dict[str, list[float]] = {name: [] for name in seen}
    for row in read:
        tops.setdefault(row["method"], []).append(row["top1"])
    best_first = sorted(tops, key=lambda name: -mean(tops[name] or [0.0]))
    body = [[name, *_facts(seen.get(name)), *_worth(name, tops)] for name in best_first]
    header = [
        "start",
        "pictures seen",
        "epochs",
        "loss, first and last epoch",
        "k-NN, %",
        "best top-1, %",
        "over untrained",
        "every seed above every untrained one",
    ]
    return f"{table(header, body)}\n\n{_note(trained, read)}"


def _facts(row: Row | None) -> list[str]:
    """What was seen, and what came of it."""
    if row is None:
        return ["", "", "", ""]
    if row["method"] == UNTRAINED:
        return ["0", "0", "", f"{row['knn']:.2f}"]
    loss = f"{row['loss_first']:.4g} -> {row['loss_last']:.4g}" + (", collapsed" if row["warning"] else "")
    return [f"{row['pictures']:,}", f"{row['epochs']:.1f}", loss, f"{row['knn']:.2f}"]


def _worth(name: str, tops: dict[str, list[float]]) -> list[str]:
    """The read-out, over all seeds; nothing where it is still to be done."""
    own, floor = tops[name], tops.get(UNTRAINED)
    if not own or not floor:
        return ["", "", ""]
    spread = f" ± {stdev(own):.2f}" if len(own) > 1 else ""
    better = "" if name == UNTRAINED else "yes" if min(own) > max(floor) else "**no**"
    return [f"{mean(own):.2f}{spread}", f"{mean(own) - mean(floor):+.2f}", better]


def _note(trained: list[Row], read: list[Row]) -> str:
    example = next(row for row in trained if row["method"] != UNTRAINED)
    first = example["config"]
    budget = f"{first['seconds']:,.0f} s on {first['threads']} thread each"
    how = [f"{first['backbone']}, {first['image_size']} px, {budget}"]
    missing = [name for name in (*PRETRAINERS, RANDOM_TOP) if name not in {row["method"] for row in read}]
    if read:
        seeds = {row["config"]["seed"] for row in read}
        epochs, rate = read[0]["config"]["epochs"], read[0]["config"]["rate"]
        how.append(f"then {epochs} epochs of top and head at rate {rate:g}, {len(seeds)} seeds")
    how.append(f"k-NN at step 0 with norms that know no pictures is {example['knn_untrained']:.2f} %")
    if missing:
        how.append(f"not measured yet: {', '.join(missing)}")
    command = f"`python -m scripts.ssl_results CUB_200_2011`, {trained[0]['date'][:10]}."
    far = [distance(row) for row in trained if row["method"] == "swav"]
    return "\n\n".join([f"{'; '.join(how)}. {command}", *far])


def distance(swav: Row) -> str:
    """How far a run of SwAV is from the paper's."""
    times = _IN_THE_PAPER / swav["pictures"]
    larger = (224 / swav["config"]["image_size"]) ** 2
    return (
        "The paper trains SwAV for 2,000 epochs of ImageNet's first 100 classes, about 128,000 pictures of 224 px: "
        f"{float(f'{times:.2g}'):,.0f} times as many pictures as SwAV saw here, each {larger:.0f} times as large."
    )


def chain() -> str:
    """Steps of SIESTA from the best bottom and from an untrained one."""
    rows = _measured("chain")
    if not rows:
        return _NOT_YET
    body = []
    for row in sorted(rows, key=lambda row: (row["start"], row["step"])):
        figures = (row[f"{when}_top{k}"] for when in ("before", "after") for k in (1, 5))
        cells = ("" if value is None else f"{value:.1f}" for value in figures)
        body.append([row["start"], str(row["classes"]), *cells])
    header = ["start", "classes so far", "before sleep, top-1 %", "top-5 %", "after it, top-1 %", "top-5 %"]
    return f"{table(header, body)}\n\n`python -m scripts.ssl_results CUB_200_2011`, {rows[0]['date'][:10]}."
