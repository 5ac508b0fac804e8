"""Markdown tables of the results of `siesta run`; accuracies are computed from the stored predictions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from scripts.measurement_tables import ROOT, rows_of, table
from scripts.ssl_tables import distance_from_paper
from siesta.experiment.config import load_config
from siesta.experiment.metrics import MeanStd
from siesta.experiment.report.figures import cost_figure, curves_figure
from siesta.experiment.report.groups import DatasetComparison, SeedGroup, group_by_dataset
from siesta.experiment.report.markdown import render_markdown_table
from siesta.experiment.report.paper_tests import cochran_table, pairs_table
from siesta.experiment.report.published import published_cells
from siesta.experiment.report.render import render_file
from siesta.experiment.report.significance import method_tests, order_tests
from siesta.experiment.results import KS, FinishedRun, read_results
from siesta.methods import METHODS

__all__ = [
    "COMPARISON",
    "FULL",
    "SMALL",
    "by_arrival",
    "class_means",
    "comparison_of",
    "defaults",
    "full",
    "has_own_class_orders",
    "headline",
    "headline_figure",
    "measured",
    "miniature",
    "protocol",
    "search",
    "searched_setting",
    "small",
    "study",
    "summary_figure",
    "trials",
]

COMPARISON = "cub200/comparison"
FULL = "cub200/cub200"
SMALL = "cub200/cub200_small"
_TINY = "tiny_imagenet/tiny_imagenet"
_BASE = "base"
_HEADLINE = {"siesta", "remind", "offline"}  # methods without which a comparison is not shown first
_COSTS = ["gains of sleeps, top-1", "updates", "MB", "TFLOPs"]


@cache
def runs_of(folder: str) -> list[FinishedRun]:
    """Return every archived run below a folder of results; their rows are verified against their predictions."""
    return read_results([ROOT / "results" / folder]).runs


@cache
def comparison_of(folder: str) -> DatasetComparison:
    """Return the runs of a folder of results grouped by order and method; all of them use the same data."""
    (comparison,) = group_by_dataset(runs_of(folder))
    return comparison


def class_means() -> str:
    """Return accuracy by feature space and mean share on held-out training images."""
    body, runs = [], runs_of("studies")
    for run in runs:
        top1, top5 = (run.metrics[k] for k in KS)
        variant = [run.source.removeprefix("class_means-"), f"{run.last['settings']['mean_share']:g}"]
        accuracies = (top1.before[-1], top1.after[-1], top5.after[-1], top1.mu)
        body.append([*variant, *(f"{value:.1f}" for value in accuracies)])
    header = [
        "space",
        "share of means",
        "before the last sleep",
        "after it",
        "after it, top-5",
        "mean after all sleeps",
    ]
    note = f"`siesta run configs/studies/class_means.toml --set network.space=...`, {_days(runs)}."
    return f"{table(header, body)}\n\n{note}"


def search(folder: str = "cub200/search") -> str:
    """Return every trial of a search: the value tried, and the final top-1 accuracy on held-out training images.

    Of REMIND, a learning rate that falls within each class is a setting of its own. Runs without updates are trials of
    their base initialisation, and are scored on the base classes alone.
    """
    if not measured(folder):
        return _not_measured(f"studies/{Path(folder).name}")
    runs, trials = runs_of(folder), dict[tuple[str, str], dict[float, float]]()
    for run in runs:
        trial, value, top1 = _trial(run)
        trials.setdefault(trial, {})[value] = top1
    body, most = [], max(map(len, trials.values()))
    for kind, setting in sorted(trials, key=lambda key: ([_BASE, *METHODS.own].index(key[0]), key[1])):
        tried = trials[kind, setting]
        cells = [
            _bold_if(f"{value:g}: {top1:.1f}", top1 == max(tried.values())) for value, top1 in sorted(tried.items())
        ]
        body.append([kind, setting, *cells, *[""] * (most - len(cells))])
    header = ["method", "setting", *(f"trial {number}" for number in range(1, most + 1))]
    return f"{table(header, body)}\n\n`{_command(runs)}`, {_days(runs)}."


def _trial(run: FinishedRun) -> tuple[tuple[str, str], float, float]:
    """Return the (method, setting) that a run is a trial of, the value tried, and its accuracy."""
    kind = run.last["kind"]
    settings = run.last["settings"]
    name = searched_setting(kind)
    if settings.get("updates") == 0:
        return (_BASE, "lr"), _base_lr(run), run.metrics[1].after[0]
    rehearsals = f", {settings['rehearsals']} rehearsals" if "rehearsals" in settings else ""
    label = "lr" if name == "rate" else name
    falling = ", falling" if (settings.get("final_rate") or math.inf) < settings.get("rate", 0.0) else ""
    return (kind, f"{label}{falling}{rehearsals}"), settings[name], run.metrics[1].alpha


def _base_lr(run: FinishedRun) -> float:
    """Return the learning rate of the base initialisation from the config, since rows do not have it."""
    config = load_config(ROOT / "configs" / "studies" / f"{run.last['experiment']}.toml")
    (base,) = (method.base for method in config.methods if method.name == run.last["method"])
    if base is None or base.lr is None:
        raise ValueError(f"{run.last['method']} has no base initialisation with a learning rate of its own")
    return base.lr


def searched_setting(kind: str) -> str:
    """Return the name in rows of the setting that the search varies: the learning rate is `rate` on disk."""
    return "shrinkage" if kind == "slda" else "rate"


def _bold_if(text: str, best: bool) -> str:
    return f"**{text}**" if best else text


def headline() -> str:
    """Return accuracies and costs of the paper's class-incremental protocol."""
    return _accuracies_and_costs(_headline_groups())


def defaults() -> str:
    """Return the same with the present defaults and an order of classes for each seed, as far as it is measured."""
    if not measured(COMPARISON):
        return _not_measured("comparison")
    return _accuracies_and_costs(comparison_of(COMPARISON).orders["class_incremental"])


def _accuracies_and_costs(groups: Sequence[SeedGroup]) -> str:
    body = []
    for group in groups:
        updates, size, _ = _costs(group)
        body.append([group.label, str(len(group.runs)), *_accuracies(group), updates, size])
    header = ["CUB-200, 224 px", "seeds", "top-1 mu / alpha, %", "top-5 mu / alpha, %", "updates", "MB"]
    return f"{table(header, body)}\n\n{_class_orders(groups)} {_note(groups)}"


def trials(folder: str, config: str) -> str:
    """Return accuracy and costs of the runs of a study by order; a command as long as there are none."""
    return _by_order(comparison_of(folder)) if measured(folder) else _not_measured(f"studies/{config}")


def headline_figure() -> bytes:
    """Return the top-1 learning curves of the same runs as SVG."""
    top1, _ = curves_figure("cub200", "class_incremental", _headline_groups()).panels
    return render_file(top1, "svg")


def summary_figure() -> bytes:
    """Return the paper's first figure for the same runs as SVG: accuracy over updates, circles as large as networks."""
    groups = _headline_groups()
    against_updates, *_ = cost_figure("cub200", "class_incremental", groups).panels
    return render_file(replace(against_updates, title="CUB-200, 224 px; area: parameters"), "svg")


def _headline_groups() -> Sequence[SeedGroup]:
    if measured(COMPARISON):
        groups = comparison_of(COMPARISON).orders["class_incremental"]
        if {group.label for group in groups} >= _HEADLINE:
            return groups
    return comparison_of(FULL).orders["class_incremental"]


def has_own_class_orders(groups: Sequence[SeedGroup]) -> bool:
    """Whether the seeds of these groups had different orders of classes."""
    return any(len({run.steps[0].new for run in group.runs}) > 1 for group in groups)


def by_arrival() -> str:
    """Return final top-1 accuracy on the classes of each class-incremental step, for both orders."""
    orders = comparison_of(FULL).orders
    steps = orders["class_incremental"][0].first.steps
    body = []
    for order, groups in orders.items():
        for group in groups:
            after = group.first.steps[-1].after
            parts = (np.isin(after.truth, list(step.new)) for step in steps)
            cells = [f"{100 * (after.top[part, 0] == after.truth[part]).mean():.1f}" for part in parts]
            body.append([group.label, order, *cells])
    names = [f"classes of step {number}" for number in range(1, len(steps) + 1)]
    return table(["method", "order", *names], body)


def full() -> str:
    """Return results of the paper's protocol on all orders, with significance tests."""
    return _with_differences(comparison_of(FULL))


def _with_differences(comparison: DatasetComparison) -> str:
    """Return a table for each order, the paper's tests, and tests between all methods in the order that is not iid."""
    order = next(name for name in comparison.orders if name != "iid")
    found = [pairs_table(comparison), cochran_table(comparison), *method_tests(order, comparison.orders[order])[:1]]
    return "\n\n".join([_by_order(comparison), *(render_markdown_table(table) for table in found if table)])


def _class_orders(groups: Sequence[SeedGroup]) -> str:
    own = has_own_class_orders(groups)
    return "Each seed has an order of classes of its own." if own else "All runs have one order of classes."


def protocol(folder: str, config: str) -> str:
    """Return results of a config whose runs are made later than its table; a command as long as there are none."""
    return _with_differences(comparison_of(folder)) if measured(folder) else _not_measured(config)


def measured(folder: str) -> bool:
    """Whether there are runs in a folder of results."""
    return (ROOT / "results" / folder).exists()


def _not_measured(config: str) -> str:
    path = load_config(ROOT / "configs" / f"{config}.toml").data.path
    return f"Not measured yet: `siesta run configs/{config}.toml --set data.path={path}`."


def small() -> str:
    """Return results of the small protocol on all orders."""
    return _by_order(comparison_of(SMALL))


def miniature() -> str:
    """Return results of the paper's main experiment on Tiny-ImageNet, and how its base was pre-trained."""
    (swav,) = rows_of("tiny_imagenet/pretraining")
    seen = f"SwAV saw {swav['pictures']:,} images in {swav['seconds']:,.0f} s of {swav['config']['threads']} thread"
    worth = f"k-NN on its 100 classes {swav['knn_untrained']:.1f} % -> {swav['knn']:.1f} %"
    return f"{_with_differences(comparison_of(_TINY))}\n\n{seen}, {worth}. {distance_from_paper(swav)}"


def study(name: str, **of_small: str) -> str:
    """Return variants of SIESTA on the small protocol, with methods of the protocol itself under other names.

    Args:
        name: The study.
        **of_small: Labels of methods of the small protocol to include, by method.
    """
    if not measured(f"cub200/{name}"):
        return _not_measured(f"studies/{name}")
    own = [group for groups in comparison_of(f"cub200/{name}").orders.values() for group in groups]
    small = comparison_of(SMALL).orders["class_incremental"]
    rows = [(of_small[group.label], group) for group in small if group.label in of_small]
    rows += [(group.label if group.order == "class_incremental" else group.order, group) for group in own]
    body = [[label, str(len(group.runs)), *_accuracies(group), _gains(group), *_costs(group)] for label, group in rows]
    header = ["", "seeds", "top-1 mu / alpha", "top-5 mu / alpha", *_COSTS]
    return f"{table(header, sorted(body, key=_natural))}\n\n{_note(own)}"


def _natural(row: list[str]) -> list[tuple[int, str]]:
    """Return a sort key that orders numbers inside names by value."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", row[0])]


def _by_order(comparison: DatasetComparison) -> str:
    """Return a table for each order, and tests between orders."""
    parts = [f"`{order}`:\n\n{_compared(groups)}\n\n{_note(groups)}" for order, groups in comparison.orders.items()]
    between = order_tests(comparison)
    return "\n\n".join([*parts, *([render_markdown_table(between)] if between else [])])


def _compared(groups: Sequence[SeedGroup]) -> str:
    """Return a row for each group, with the paper's values where there are any."""
    papers = [published_cells(group) for group in groups]
    body = []
    for group, paper in zip(groups, papers, strict=True):
        published = [f"{paper.mu or '-'} / {paper.alpha}" if paper else ""] if any(papers) else []
        cells = [*_accuracies(group), *published, _gains(group), *_costs(group)]
        body.append([group.label, str(len(group.runs)), *cells])
    header = [
        "method",
        "seeds",
        "top-1 mu / alpha",
        "top-5 mu / alpha",
        *(["paper's top-5"] if any(papers) else []),
        *_COSTS,
    ]
    return table(header, body)


def _accuracies(group: SeedGroup) -> list[str]:
    """Return mu and alpha for each k; an offline learner has alpha only."""
    cells = []
    for k in KS:
        mu, alpha = (group.over_seeds(partial(_metric, k, name)) for name in ("mu", "alpha"))
        cells.append(f"{'-' if group.offline else _format_mean_std(mu)} / {_format_mean_std(alpha)}")
    return cells


def _metric(k: int, name: str, run: FinishedRun) -> float:
    """Return a field of a run's `RunMetrics` for k."""
    value: float = getattr(run.metrics[k], name)
    return value


def _format_mean_std(found: MeanStd | None) -> str:
    if found is None:
        return "-"
    return f"{found.mean:.1f}" + ("" if found.std is None else f"±{found.std:.1f}")


def _gains(group: SeedGroup) -> str:
    """Return the gain of each sleep, mean over seeds."""
    if group.offline or not group.sleeps:
        return ""
    before = group.curve(lambda run: run.metrics[1].before)
    after = group.curve(lambda run: run.metrics[1].after)
    return ", ".join(f"{high.mean - low.mean:+.1f}" for low, high in zip(before, after, strict=True) if low and high)


def _costs(group: SeedGroup) -> list[str]:
    last = group.first.last
    size, flops = sum(last["bytes"].values()), last["flops"]
    return [f"{last['updates']:,}", f"{size / 1e6:.1f}", f"{(flops['wake'] + flops['sleep']) / 1e12:.1f}"]


def _note(groups: Sequence[SeedGroup]) -> str:
    runs = [run for group in groups for run in group.runs]
    seeds = ",".join(str(seed) for seed in sorted({run.last["seed"] for run in runs}))
    return f"`{_command(runs)} --seeds {seeds}`, {_days(runs)}."


def _command(runs: Sequence[FinishedRun]) -> str:
    """Return the command without the selection of methods, orders and seeds."""
    command: str = runs[0].last["command"].partition(" --methods")[0]
    return command


def _days(runs: Iterable[FinishedRun]) -> str:
    days = sorted({run.last["date"][:10] for run in runs})
    return " to ".join(dict.fromkeys((days[0], days[-1])))
