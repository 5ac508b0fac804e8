"""The experiment harness: configs, runs, metrics, significance tests and reports for the paper's comparisons."""

from siesta.experiment.config import Config, load_config
from siesta.experiment.plan import PlannedRun, Stopwatch, estimate_cost, planned_runs, read_dataset
from siesta.experiment.run import RunStatus, completed_steps, experiment_lock, run_all

__all__ = [
    "Config",
    "PlannedRun",
    "RunStatus",
    "Stopwatch",
    "completed_steps",
    "estimate_cost",
    "experiment_lock",
    "load_config",
    "planned_runs",
    "read_dataset",
    "run_all",
]
