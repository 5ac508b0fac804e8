"""Tables of what `siesta run` measured; accuracies are those of the stored answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, partial

import numpy as np

from scripts.measured import ROOT, rows_of, table
from scripts.ssl import distance
from siesta.experiment.config import load_config
from siesta.experiment.metrics import Spread
from siesta.experiment.report.differences import between_methods, between_orders
from siesta.experiment.report.figures import curves_figure
from siesta.experiment.report.groups import Comparison, Group, compared
from siesta.experiment.report.look import standalone
from siesta.experiment.report.markdown import markdown_table
from siesta.experiment.report.paper import printed_beside
from siesta.experiment.results import KS, Run, read_results
from siesta.methods import METHODS

__all__ = [
    "by_arrival",
    "class_means",
    "full",
    "headline",
    "headline_figure",
    "miniature",
    "search",
    "small",
    "study",
    "what_is_chosen",
]

_FULL, _SMALL, _TINY = "cub200/cub200", "cub200/cub200_small", "tiny_imagenet/tiny_imagenet"
_BASE = "base"
_COSTS = ["gains of sleeps, top-1", "updates", "MB", "TFLOPs"]


@cache
def runs_of(folder: str) -> list[Run]:
    """Every archived run below a folder of results; its rows agree with its predictions."""
    return read_results([ROOT / "results" / folder]).runs


@cache
def comparison_of(folder: str) -> Comparison:
    """Methods on their orders, over seeds; all saw the same data."""
    (comparison,) = compared(runs_of(folder))
    return comparison


def class_means() -> str:
    """Spaces and blends, on held-out training pictures: before and after the last sleep, and the mean over steps."""
    body, runs = [], runs_of("studies")
    for run in runs:
        top1, top5 = (run.summaries[k] for k in KS)
        name = [run.source.removeprefix("class_means-"), f"{run.last['settings']['mean_share']:g}"]
        figures = (top1.before[-1], top1.after[-1], top5.after[-1], top1.mu)
        body.append([*name, *(f"{value:.1f}" for value in figures)])
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
    """Every trial: what was tried, and the final top-1 accuracy on held-out training pictures.

    Runs that never train are trials of the base that they start from, and count by its classes alone.
    """
    runs, trials = runs_of(folder), dict[tuple[str, str], dict[float, float]]()
    for run in runs:
        what, value, top1 = _trial(run)
        trials.setdefault(what, {})[value] = top1
    body, most = [], max(map(len, trials.values()))
    for kind, words in sorted(trials, key=lambda key: ([_BASE, *METHODS].index(key[0]), key[1])):
        tried = trials[kind, words]
        cells = [
            _marked(f"{value:g}: {top1:.1f}", top1 == max(tried.values())) for value, top1 in sorted(tried.items())
        ]
        body.append([kind, words, *cells, *[""] * (most - len(cells))])
    header = ["method", "what is chosen", *(f"trial {number}" for number in range(1, most + 1))]
    return f"{table(header, body)}\n\n`{_command(runs)}`, {_days(runs)}."


def _trial(run: Run) -> tuple[tuple[str, str], float, float]:
    """Whose trial of what a run is, the value that was tried, and what came out."""
    kind, settings, chosen = run.last["kind"], run.last["settings"], what_is_chosen(run.last["kind"])
    if settings.get("updates") == 0:
        return (_BASE, "rate"), _base_rate(run), run.summaries[1].after[0]
    rehearsals = f", {settings['rehearsals']} rehearsals" if "rehearsals" in settings else ""
    return (kind, f"{chosen}{rehearsals}"), settings[chosen], run.summaries[1].alpha


def _base_rate(run: Run) -> float:
    """Rows do not have it: the config does."""
    config = load_config(ROOT / "configs" / "studies" / f"{run.last['experiment']}.toml")
    (base,) = (method.base for method in config.methods if method.name == run.last["method"])
    if base is None or base.rate is None:
        raise ValueError(f"{run.last['method']} has no base with a rate of its own")
    return base.rate


def what_is_chosen(kind: str) -> str:
    """The setting of a method that the search is over."""
    return "shrinkage" if kind == "slda" else "rate"


def _marked(text: str, best: bool) -> str:
    return f"**{text}**" if best else text


def headline() -> str:
    """The paper's protocol, class after class: what came out, and what it took."""
    groups, body = comparison_of(_FULL).orders["class_incremental"], []
    for group in groups:
        updates, size, _ = _costs(group)
        body.append([group.label, *_accuracies(group), updates, size])
    header = ["CUB-200, 224 px", "top-1 mu / alpha, %", "top-5 mu / alpha, %", "updates", "MB"]
    return f"{table(header, body)}\n\n{_note(groups)}"


def headline_figure() -> bytes:
    """The same step by step, top-1, as SVG."""
    top1, _ = curves_figure("cub200", "class_incremental", comparison_of(_FULL).orders["class_incremental"]).panels
    return standalone(top1, "svg")


def by_arrival() -> str:
    """The end of the paper's protocol, top-1, over the classes of each step; over the same classes in iid order."""
    orders = comparison_of(_FULL).orders
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
    """The paper's protocol on all orders, and which methods differ."""
    return _with_differences(comparison_of(_FULL))


def _with_differences(comparison: Comparison) -> str:
    """All orders, and which methods differ, class after class."""
    square, _ = between_methods("class_incremental", comparison.orders["class_incremental"])
    return f"{_by_order(comparison)}\n\n{markdown_table(square)}"


def small() -> str:
    """The small protocol on all orders."""
    return _by_order(comparison_of(_SMALL))


def miniature() -> str:
    """The paper's main experiment on Tiny-ImageNet: every method over one base, and what that was pre-trained with."""
    (swav,) = rows_of("tiny_imagenet/pretraining")
    seen = f"SwAV saw {swav['pictures']:,} pictures in {swav['seconds']:,.0f} s of {swav['config']['threads']} thread"
    worth = f"k-NN on its 100 classes {swav['knn_untrained']:.1f} % -> {swav['knn']:.1f} %"
    return f"{_with_differences(comparison_of(_TINY))}\n\n{seen}, {worth}. {distance(swav)}"


def study(name: str, **of_small: str) -> str:
    """Variants of SIESTA on the small protocol, beside methods of the protocol itself under other names."""
    if not (ROOT / "results" / "cub200" / name).exists():
        return f"Not measured yet: `siesta run configs/studies/{name}.toml --set data.path=CUB_200_2011`."
    own = [group for groups in comparison_of(f"cub200/{name}").orders.values() for group in groups]
    small = comparison_of(_SMALL).orders["class_incremental"]
    rows = [(of_small[group.label], group) for group in small if group.label in of_small]
    rows += [(group.label if group.order == "class_incremental" else group.order, group) for group in own]
    body = [[label, str(len(group.runs)), *_accuracies(group), _gains(group), *_costs(group)] for label, group in rows]
    header = ["", "seeds", "top-1 mu / alpha", "top-5 mu / alpha", *_COSTS]
    return f"{table(header, sorted(body, key=_natural))}\n\n{_note(own)}"


def _natural(row: list[str]) -> list[tuple[int, str]]:
    """Names in order, their numbers as numbers."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", row[0])]


def _by_order(comparison: Comparison) -> str:
    """A table for each order, and whether the order makes a difference."""
    parts = [f"`{order}`:\n\n{_compared(groups)}\n\n{_note(groups)}" for order, groups in comparison.orders.items()]
    between = between_orders(comparison)
    return "\n\n".join([*parts, *([markdown_table(between)] if between else [])])


def _compared(groups: Sequence[Group]) -> str:
    """A row for each group, beside the paper's where it printed any."""
    papers = [printed_beside(group) for group in groups]
    body = []
    for group, paper in zip(groups, papers, strict=True):
        beside = [f"{paper.mu or '-'} / {paper.alpha}" if paper else ""] if any(papers) else []
        body.append([group.label, str(len(group.runs)), *_accuracies(group), *beside, _gains(group), *_costs(group)])
    header = [
        "method",
        "seeds",
        "top-1 mu / alpha",
        "top-5 mu / alpha",
        *(["paper's top-5"] if any(papers) else []),
        *_COSTS,
    ]
    return table(header, body)


def _accuracies(group: Group) -> list[str]:
    """Mu and alpha for each k; an offline learner has one accuracy."""
    cells = []
    for k in KS:
        mu, alpha = (group.over_seeds(partial(_of, k, name)) for name in ("mu", "alpha"))
        cells.append(f"{'-' if group.offline else _spread(mu)} / {_spread(alpha)}")
    return cells


def _of(k: int, name: str, run: Run) -> float:
    """A measure of a run: an attribute of its summary for k."""
    value: float = getattr(run.summaries[k], name)
    return value


def _spread(found: Spread | None) -> str:
    if found is None:
        return "-"
    return f"{found.mean:.1f}" + ("" if found.std is None else f"±{found.std:.1f}")


def _gains(group: Group) -> str:
    """What each sleep added, mean over seeds."""
    if group.offline or not group.sleeps:
        return ""
    before, after = group.curve(lambda run: run.summaries[1].before), group.curve(lambda run: run.summaries[1].after)
    return ", ".join(f"{two.mean - one.mean:+.1f}" for one, two in zip(before, after, strict=True) if one and two)


def _costs(group: Group) -> list[str]:
    last = group.first.last
    size, flops = sum(last["bytes"].values()), last["flops"]
    return [f"{last['updates']:,}", f"{size / 1e6:.1f}", f"{(flops['wake'] + flops['sleep']) / 1e12:.1f}"]


def _note(groups: Sequence[Group]) -> str:
    runs = [run for group in groups for run in group.runs]
    seeds = ",".join(str(seed) for seed in sorted({run.last["seed"] for run in runs}))
    return f"`{_command(runs)} --seeds {seeds}`, {_days(runs)}."


def _command(runs: Sequence[Run]) -> str:
    """What ran all of them."""
    command: str = runs[0].last["command"].partition(" --methods")[0]
    return command


def _days(runs: Iterable[Run]) -> str:
    days = sorted({run.last["date"][:10] for run in runs})
    return " to ".join(dict.fromkeys((days[0], days[-1])))
