"""Rehearsal policies by name: which stored samples a sleep goes through."""

from siesta.contracts import Policy
from siesta.errors import BadInput
from siesta.policies.balanced_prototypical import BalancedPrototypical
from siesta.policies.balanced_uniform import BalancedUniform
from siesta.policies.grasp import Grasp
from siesta.policies.max_interference import MaxInterference
from siesta.policies.max_loss import MaxLoss
from siesta.policies.min_margin import MinMargin
from siesta.policies.min_rehearsal import MinRehearsal
from siesta.policies.prototypical import Prototypical
from siesta.policies.uniform import Uniform

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

POLICIES: dict[str, type[Policy]] = {
    "balanced_uniform": BalancedUniform,
    "uniform": Uniform,
    "min_rehearsal": MinRehearsal,
    "max_interference": MaxInterference,
    "max_loss": MaxLoss,
    "min_margin": MinMargin,
    "prototypical": Prototypical,
    "balanced_prototypical": BalancedPrototypical,
    "grasp": Grasp,
}


def explain_policies() -> str:
    """One line a policy: its name and what it does."""
    return "; ".join(
        f"{name}: {(policy.__doc__ or '').splitlines()[0].rstrip('.')}" for name, policy in POLICIES.items()
    )


def make_policy(policy: str | Policy) -> Policy:
    """A policy by its name; an object of your own is taken as it is."""
    if not isinstance(policy, str):
        return policy
    if policy not in POLICIES:
        raise BadInput(f"there is no policy '{policy}': choose one of {', '.join(POLICIES)}")
    return POLICIES[policy]()
