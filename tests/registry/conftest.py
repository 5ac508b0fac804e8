"""A folder to install packages in; the source of the outside package is not collected."""

from tests.registry.packages import site

__all__ = ["site"]

collect_ignore = ["outside_parts"]  # its examples add themselves to those of the conformance tests
