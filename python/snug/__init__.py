"""Will it fit, what should I change, why did it run out: the planner of snug, in Python.

Sizes are bytes, times seconds, lengths tokens; ``str()`` of an answer is what the program prints. docs/python.md is the tour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._ask import version as _version
from ._catalogues import Accelerator, CatalogueModel, gpus, models
from ._explanations import Advice, Explanation, Frame, RecipeAdvice, explain
from ._fits import Choice, Fit, FittedModel, Method, PyTorchFit, RunCost, WayOut, fit
from ._live import from_trainer
from ._meshes import Mesh, Meshes, meshes
from ._plans import (
    Cost,
    Device,
    File,
    FileKey,
    Homes,
    Interval,
    Lever,
    Peak,
    Plan,
    PlannedModel,
    PyTorchPlan,
    PyTorchRank,
    Rank,
    Setup,
    plan,
)
from ._textbooks import Textbook, TextbookActivations, TextbookRow, textbook
from .errors import Error

if TYPE_CHECKING:
    from .callback import Callback

__version__ = _version()

__all__ = [
    "Accelerator",
    "Advice",
    "Callback",
    "CatalogueModel",
    "Choice",
    "Cost",
    "Device",
    "Error",
    "Explanation",
    "File",
    "FileKey",
    "Fit",
    "FittedModel",
    "Frame",
    "Homes",
    "Interval",
    "Lever",
    "Mesh",
    "Meshes",
    "Method",
    "Peak",
    "Plan",
    "PlannedModel",
    "PyTorchFit",
    "PyTorchPlan",
    "PyTorchRank",
    "Rank",
    "RecipeAdvice",
    "RunCost",
    "Setup",
    "Textbook",
    "TextbookActivations",
    "TextbookRow",
    "WayOut",
    "__version__",
    "explain",
    "fit",
    "from_trainer",
    "gpus",
    "meshes",
    "models",
    "plan",
    "textbook",
]


def __getattr__(name: str) -> Any:
    """Callback needs transformers, which is imported when it is first asked for."""
    if name == "Callback":
        from .callback import Callback

        return Callback
    raise AttributeError(f"module 'snug' has no attribute {name!r}")
