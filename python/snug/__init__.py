"""The planner of snug, in Python."""

from ._ask import version as _version
from .errors import Error

__version__ = _version()

__all__ = ["Error", "__version__"]
