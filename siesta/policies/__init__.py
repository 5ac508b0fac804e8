"""Rehearsal policies by name; a policy chooses which stored samples a sleep rehearses."""

from siesta.contracts import Policy
from siesta.policies.balanced_prototypical import BalancedPrototypical
from siesta.policies.balanced_uniform import BalancedUniform
from siesta.policies.grasp import Grasp
from siesta.policies.max_interference import MaxInterference
from siesta.policies.max_loss import MaxLoss
from siesta.policies.min_margin import MinMargin
from siesta.policies.min_rehearsal import MinRehearsal
from siesta.policies.prototypical import Prototypical
from siesta.policies.uniform import Uniform
from siesta.registry import Registry, class_of

__all__ = [
    "DEFAULT_POLICY",
    "POLICIES",
    "BalancedPrototypical",
    "BalancedUniform",
    "Grasp",
    "MaxInterference",
    "MaxLoss",
    "MinMargin",
    "MinRehearsal",
    "Prototypical",
    "Uniform",
    "explain_policies",
    "make_policy",
]

DEFAULT_POLICY = "balanced_uniform"

POLICIES: Registry[type[Policy]] = Registry(
    "policy",
    {
        "balanced_uniform": BalancedUniform,
        "uniform": Uniform,
        "min_rehearsal": MinRehearsal,
        "max_interference": MaxInterference,
        "max_loss": MaxLoss,
        "min_margin": MinMargin,
        "prototypical": Prototypical,
        "balanced_prototypical": BalancedPrototypical,
        "grasp": Grasp,
    },
    group="siesta.policies",
    requirement=class_of(Policy, arguments=0),
)


def explain_policies() -> str:
    """Return the name and the summary of every policy, for help texts."""
    return "; ".join(f"{name}: {summary}" for name, summary in POLICIES.summaries().items())


def make_policy(policy: str | Policy) -> Policy:
    """Return the policy of a name; a policy object is returned as it is."""
    return POLICIES[policy]() if isinstance(policy, str) else policy
