"""The paper's claims beside our measurements: what it says, what rows in results/ show, and whether it holds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.experiment_tables import COMPARISON, FULL, SMALL, comparison_of, has_own_class_orders, measured
from scripts.measurement_tables import ROOT, rows_of, table
from siesta.experiment.paper.tables import SLEEP_GAINS, published_row
from siesta.experiment.report.groups import DatasetComparison, SeedGroup
from siesta.experiment.report.paper_tests import PaperPair, seed_pairs
from siesta.experiment.results import KS
from siesta.experiment.stats import MARGIN

__all__ = ["claims"]

_CLASS_INCREMENTAL, _IID, _LONG_TAILED = "class_incremental", "iid", "long_tailed"
_PROTOCOLS = {COMPARISON: "CUB-200, 224 px", FULL: "CUB-200, 224 px", SMALL: "CUB-200, 112 px"}
"""Folders of results in which a claim may be measured, the best one first."""

_LONG_TAILS = {
    "cub200/long_tail_cub200": "CUB-200, 112 px, factor 10",
    "cifar100/long_tail_cifar100": "CIFAR-100, 96 px, factor 100",
}
_VARIANTS = ("siesta", "siesta_paper")
_YES, _NO, _UNDECIDED = "yes", "no", "undecided"
_NOT_MEASURED = "not measured yet"


@dataclass(frozen=True)
class _Finding:
    """What was measured on a claim, and whether it holds."""

    measured: str
    holds: str


_NOTHING = _Finding(_NOT_MEASURED, _NOT_MEASURED)


def claims() -> str:
    """Return the table of claims; every figure of ours is computed from stored predictions or benchmark rows."""
    body = [[f"{claim}: {published}", found.measured, found.holds] for claim, published, found in _claims()]
    note = (
        f"Differences are in points of final accuracy, one for each seed of SIESTA; `equal` means that the 95 % "
        f"interval of every difference lies within {MARGIN:g} point, `beats` that it is above zero. A method that was "
        "not run with a seed of SIESTA is represented by its lowest one."
    )
    return f"{table(['the paper says', 'we measured', 'holds?'], body)}\n\n{note}"


def _claims() -> Iterable[tuple[str, str, _Finding]]:
    cub = {name: published_row("tab:cub", name) for name in ("SIESTA", "REMIND", "ER", "Offline")}
    alpha = {name: f"{row.alpha}" for name, row in cub.items()}
    iid = published_row("text:iid", "SIESTA").alpha
    no_aug = published_row("tab:no_aug", "SIESTA").alpha
    batches = [published_row("tab:batch_size", f"SIESTA, batch {size}").alpha for size in (32, 64, 128, 256, 512)]
    known = [value for value in batches if value is not None]
    lt, lt_uniform = (published_row("tab:places", name).alpha for name in ("SIESTA", "SIESTA, uniform"))
    buffer = published_row("text:buffer", "SIESTA").alpha
    gain, gain_std = SLEEP_GAINS[100]
    against = f"top-5 {alpha['SIESTA']} against"
    yield "equals the offline learner", f"CUB-200, {against} {alpha['Offline']}", _equal("offline")
    yield "the same, where offline has the head of siesta", "as above", _equal("offline_discriminant")
    yield "the same, where offline trains the whole network", "as above", _equal("offline_whole")
    yield "beats REMIND", f"CUB-200, {against} {alpha['REMIND']}", _beats("remind")
    yield "beats ER", f"CUB-200, {against} {alpha['ER']}", _beats("er")
    yield "blind to order", f"ImageNet, top-5 {no_aug} against {iid} in iid order", _blind()
    yield "every sleep helps", f"ImageNet, top-5 +{gain}±{gain_std} a sleep", _sleeps()
    yield "batch size hardly matters", f"ImageNet, top-5 {min(known)} to {max(known)}", _batch_size()
    yield (
        "most policies are similar on balanced classes",
        "ImageNet, 300 classes, all but max interference",
        _policies(),
    )
    yield "balanced rehearsal wins on a long tail", f"Places365-LT, top-1 {lt} against {lt_uniform}", _long_tail()
    yield "a smaller memory costs accuracy", f"ImageNet, top-5 {no_aug} -> {buffer} with a tenth", _memory_size()
    yield "faster than REMIND and ER", "ImageNet, 3.4x REMIND, SIESTA-ER 3x ER", _speed()
    yield "little memory", f"CUB-200, {cub['SIESTA'].memory} MB against {cub['ER'].memory} MB for ER", _memory()


# -- finding runs -------------------------------------------------------------------------------------------------


def _first(
    needed: Sequence[tuple[str, str]], folders: Iterable[str] = _PROTOCOLS
) -> tuple[str, DatasetComparison] | None:
    """Return the first folder that has all these (order, method), with its runs."""
    for folder in folders:
        if measured(folder):
            comparison = comparison_of(folder)
            if all(_group(comparison, *place) for place in needed):
                return folder, comparison
    return None


def _group(comparison: DatasetComparison, order: str, label: str) -> SeedGroup | None:
    groups = comparison.orders.get(order, [])
    return next((group for group in groups if group.label == label), None)


def _pairs(comparison: DatasetComparison, first: tuple[str, str], second: tuple[str, str]) -> list[PaperPair]:
    one, other = _group(comparison, *first), _group(comparison, *second)
    return seed_pairs(one, other, second[1]) if one and other else []


def _pairs_of_variants(comparison: DatasetComparison, second: tuple[str, str] | None) -> list[PaperPair]:
    """Return the pairs of both variants of SIESTA with a method, or with themselves in iid order."""
    return [
        pair for label in _VARIANTS for pair in _pairs(comparison, (_CLASS_INCREMENTAL, label), second or (_IID, label))
    ]


# -- claims ---------------------------------------------------------------------------------------------------------


def _compared(second: tuple[str, str] | None, judge: Callable[[Sequence[PaperPair], int], str], name: str) -> _Finding:
    """Compare SIESTA with a method in the best protocol that has both; None compares it with its iid order."""
    found = _first([(_CLASS_INCREMENTAL, "siesta"), second or (_IID, "siesta")])
    if found is None:
        return _NOTHING
    folder, comparison = found
    pairs = _pairs_of_variants(comparison, second)
    parts = []
    for label in dict.fromkeys(pair.label for pair in pairs):
        own = [pair for pair in pairs if pair.label == label]
        points = (f"top-{k} {', '.join(f'{pair.difference(k).points:+.1f}' for pair in own)}" for k in KS)
        others = len({pair.second.path for pair in own})
        parts.append(f"{label} - {name}: {'; '.join(points)} ({_seeds(len(own))}; {name} {_seeds(others)})")
    orders = "an order" if has_own_class_orders(comparison.orders[_CLASS_INCREMENTAL]) else "one order"
    holds = ", ".join(f"top-{k} {judge(pairs, k)}" for k in KS)
    return _Finding(
        f"{_PROTOCOLS[folder]}, {orders} of classes{' a seed' if orders == 'an order' else ''}: {'; '.join(parts)}",
        holds,
    )


def _seeds(count: int) -> str:
    return "one seed" if count == 1 else f"{count} seeds"


def _equal(method: str) -> _Finding:
    return _compared((_CLASS_INCREMENTAL, method), _judge_equal, method)


def _blind() -> _Finding:
    return _compared(None, _judge_equal, "iid")


def _beats(method: str) -> _Finding:
    return _compared((_CLASS_INCREMENTAL, method), _judge_better, method)


def _judge_equal(pairs: Sequence[PaperPair], k: int) -> str:
    verdicts = [pair.difference(k).verdict for pair in pairs]
    if all(verdict.startswith("equivalent") for verdict in verdicts):
        return _YES
    different = verdicts.count("different")
    return f"{_NO} ({different} of {len(pairs)} differ)" if different else _UNDECIDED


def _judge_better(pairs: Sequence[PaperPair], k: int) -> str:
    differences = [pair.difference(k) for pair in pairs]
    if all(found.low > 0 for found in differences):
        return _YES
    return _NO if any(found.high < 0 for found in differences) else _UNDECIDED


def _sleeps() -> _Finding:
    found = _first([(_CLASS_INCREMENTAL, "siesta")])
    if found is None:
        return _NOTHING
    folder, comparison = found
    parts, lost, total = [], 0, 0
    for group in (_group(comparison, _CLASS_INCREMENTAL, label) for label in _VARIANTS):
        if group is None:
            continue
        for k in KS:
            gains = [
                [
                    after - before
                    for after, before in zip(run.metrics[k].after, run.metrics[k].before, strict=True)
                    if before
                ]
                for run in group.runs
            ]
            lost += sum(gain <= 0 for run in gains for gain in run)
            total += sum(map(len, gains))
            means = ", ".join(f"{sum(step) / len(step):+.1f}" for step in zip(*gains, strict=True))
            parts.append(f"{group.label}, top-{k}: {means}")
    holds = _YES if not lost else f"{_NO} ({lost} of {total} gain nothing)"
    return _Finding(f"{_PROTOCOLS[folder]}, mean over seeds of each sleep: {'; '.join(parts)}", holds)


def _study(name: str, **of_small: str) -> dict[str, float]:
    """Return final top-5 by variant of a study on the small protocol.

    Args:
        name: The study.
        **of_small: Names in the study of methods of the small protocol itself, by method.
    """
    if not (measured(f"cub200/{name}") and measured(SMALL)):
        return {}
    values = {group.label: _alpha(group) for group in comparison_of(f"cub200/{name}").orders[_CLASS_INCREMENTAL]}
    small = comparison_of(SMALL).orders[_CLASS_INCREMENTAL]
    return values | {of_small[group.label]: _alpha(group) for group in small if group.label in of_small}


def _alpha(group: SeedGroup, k: int = KS[1]) -> float:
    found = group.over_seeds(lambda run: run.metrics[k].alpha)
    assert found is not None  # every finished run has one
    return found.mean


def _batch_size() -> _Finding:
    values = _study("batch_size", siesta="batch_32")
    if not values:
        return _NOTHING
    low, high = min(values.values()), max(values.values())
    sizes = sorted(int(name.rpartition("_")[2]) for name in values)
    text = (
        f"CUB-200, 112 px, batch {sizes[0]} to {sizes[-1]}: top-5 {low:.1f} to {high:.1f}; one seed each, 32 has three"
    )
    return _Finding(text, _YES if high - low < MARGIN else f"{_NO} ({high - low:.1f} points)")


def _policies() -> _Finding:
    values = _study("policies", siesta="balanced_uniform", siesta_uniform="uniform")
    if not values:
        return _NOTHING
    ours = values.pop("balanced_uniform")
    near = [name for name, value in values.items() if abs(value - ours) < MARGIN]
    others = {name: value - ours for name, value in values.items() if name not in near}
    far = ", ".join(f"{name} {difference:+.1f}" for name, difference in others.items())
    text = f"CUB-200, 112 px, top-5: within a point of balanced uniform ({ours:.1f}) are {', '.join(near)}; {far}"
    holds = _YES if others.keys() <= {"max_interference"} else f"{_NO} ({len(near)} of {len(values)} within a point)"
    return _Finding(f"{text}; one seed each, uniform and balanced uniform three", holds)


def _long_tail() -> _Finding:
    parts, pairs = [], []
    for folder, where in _LONG_TAILS.items():
        for label in _VARIANTS if measured(folder) else ():
            places = ((_LONG_TAILED, label), (_LONG_TAILED, f"{label}_uniform"))
            found = _pairs(comparison_of(folder), *places)
            points = ", ".join(f"{pair.difference(1).points:+.1f}" for pair in found)
            parts += [f"{where}: {label} - {label}_uniform, top-1 {points}"] if found else []
            pairs += found
    return _Finding("; ".join(parts), f"top-1 {_judge_better(pairs, 1)}") if pairs else _NOTHING


def _memory_size() -> _Finding:
    values = _study("memory", siesta="samples_5994")
    if not values:
        return _NOTHING
    sizes = sorted(values, key=lambda name: int(name.rpartition("_")[2]), reverse=True)
    shown = " -> ".join(f"{values[name]:.1f}" for name in sizes)
    falls = all(values[more] > values[fewer] for more, fewer in itertools.pairwise(sizes))
    counts = ", ".join(f"{int(name.rpartition('_')[2]):,}" for name in sizes)
    return _Finding(
        f"CUB-200, 112 px, {counts} samples: top-5 {shown}; one seed each, all samples have three",
        _YES if falls else _NO,
    )


def _speed() -> _Finding:
    if not Path(ROOT / "results" / "bench.jsonl").exists():
        return _NOTHING
    rows = [row for row in rows_of("bench") if row["bench"] == "training_speedup"]
    if not rows:
        return _Finding(f"{_NOT_MEASURED}: `python -m benchmarks comparison`", _NOT_MEASURED)
    parts = [f"{row['config']['method']} {row['value']:.1f}x {row['config']['over']}" for row in rows]
    holds = [row["value"] >= float(row["limit"].split()[0]) for row in rows]
    size = rows[0]["config"]["image_size"]
    text = f"noise of {size} px, for the same updates on a CPU: {'; '.join(parts)}"
    if all(holds):
        return _Finding(text, _YES)
    return _Finding(
        text,
        f"faster, by less ({sum(holds)} of {len(holds)} reach it)" if all(row["value"] > 1 for row in rows) else _NO,
    )


def _memory() -> _Finding:
    found = _first([(_CLASS_INCREMENTAL, "siesta"), (_CLASS_INCREMENTAL, "er")])
    if found is None:
        return _NOTHING
    folder, comparison = found
    siesta, er = (_group(comparison, _CLASS_INCREMENTAL, label) for label in ("siesta", "er"))
    assert siesta is not None and er is not None  # `_first` found them
    ours, theirs = (sum(group.first.last["bytes"].values()) / 1e6 for group in (siesta, er))
    return _Finding(
        f"{_PROTOCOLS[folder]}: {ours:.1f} MB against {theirs:.1f} MB for ER", _YES if ours < theirs else _NO
    )
