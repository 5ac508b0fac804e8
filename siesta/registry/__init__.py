"""Parts by name: those of siesta, and those that other installed packages add by entry points."""

from siesta.registry.registry import Registry, part_name
from siesta.registry.requirements import Requirement, class_of, function_of, instance_of

__all__ = ["Registry", "Requirement", "class_of", "function_of", "instance_of", "part_name"]
