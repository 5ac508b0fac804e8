"""The harness: the paper's comparisons, each on the same budget."""

from siesta.experiment.config import Config, load_config
from siesta.experiment.plan import PlannedRun, Stopwatch, estimate, planned_runs, read_dataset
from siesta.experiment.run import Stage, locked, run_all, steps_done

__all__ = [
    "Config",
    "PlannedRun",
    "Stage",
    "Stopwatch",
    "estimate",
    "load_config",
    "locked",
    "planned_runs",
    "read_dataset",
    "run_all",
    "steps_done",
]
