"""Tables of what `siesta run` measured on CUB-200; accuracies are those of the stored answers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from operator import attrgetter

from scripts.measured import ROOT, table
from siesta.experiment.metrics import Spread
from siesta.experiment.report.groups import Group, compared
from siesta.experiment.report.runs import KS, Run, read_results
from siesta.methods import METHODS

__all__ = ["class_means", "search", "small"]

_COSTS = ("updates", "MB", "TFLOPs")


@cache
def runs_of(folder: str) -> list[Run]:
    """Every archived run below a folder of results; its rows agree with its predictions."""
    return read_results([ROOT / "results" / folder]).runs


def groups_of(folder: str) -> list[Group]:
    """Methods on their orders, over seeds."""
    return [group for comparison in compared(runs_of(folder)) for group in comparison.groups()]


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


def search() -> str:
    """Every trial: what was tried, and the final top-1 accuracy on held-out training pictures."""
    runs, trials = runs_of("cub200/search"), dict[str, dict[float, float]]()
    for run in runs:
        settings = run.last["settings"]
        tried = settings["shrinkage" if run.last["kind"] == "slda" else "rate"]
        trials.setdefault(run.last["kind"], {})[tried] = run.summaries[1].alpha
    body = []
    for kind in (some for some in METHODS if some in trials):
        best = max(trials[kind].values())
        cells = []
        for tried, alpha in sorted(trials[kind].items()):
            mark = "**" if alpha == best else ""
            cells.append(f"{mark}{tried:g}: {alpha:.1f}{mark}")
        body.append([kind, "shrinkage" if kind == "slda" else "rate", *cells])
    header = ["method", "what is chosen", *(f"trial {number}" for number in range(1, 5))]
    return f"{table(header, body)}\n\n`siesta run configs/studies/search.toml`, {_days(runs)}."


def small() -> str:
    """The small protocol on all orders."""
    return _by_order(groups_of("cub200/cub200_small"))


def _by_order(groups: list[Group]) -> str:
    orders = dict.fromkeys(group.order for group in groups)
    return "\n\n".join(f"`{name}`:\n\n{_methods([some for some in groups if some.order == name])}" for name in orders)


def _methods(groups: list[Group]) -> str:
    body = [[group.label, str(len(group.runs)), *_accuracies(group), _gains(group), *_costs(group)] for group in groups]
    header = ["method", "seeds", "top-1 mu / alpha", "top-5 mu / alpha", "gains of sleeps, top-1", *_COSTS]
    return f"{table(header, body)}\n\n{_note(groups)}"


def _accuracies(group: Group) -> list[str]:
    """Mu and alpha for each k; an offline learner has one accuracy."""
    cells = []
    for k in KS:
        mu, alpha = (group.over_seeds(_Of(k, name)) for name in ("mu", "alpha"))
        cells.append(f"{'-' if group.offline else _spread(mu)} / {_spread(alpha)}")
    return cells


class _Of:
    """A measure of a run: an attribute of its summary for k."""

    def __init__(self, k: int, name: str) -> None:
        self._k, self._get = k, attrgetter(name)

    def __call__(self, run: Run) -> float:
        value: float = self._get(run.summaries[self._k])
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


def _note(groups: list[Group]) -> str:
    command = groups[0].first.last["command"].partition(" --methods")[0]
    return f"`{command}`, {_days(run for group in groups for run in group.runs)}."


def _days(runs: Iterable[Run]) -> str:
    days = sorted({run.last["date"][:10] for run in runs})
    return " to ".join(dict.fromkeys((days[0], days[-1])))
