"""Will it fit, what should I change, why did it run out: the planner of snug, in Python.

Sizes are bytes, times seconds, lengths tokens; ``str()`` of an answer is what the program prints. docs/python.md is the tour.
"""

from __future__ import annotations

from ._ask import version as _version
from ._catalogues import Accelerator, CatalogueModel, gpus, models
from ._explanations import Advice, Explanation, Frame, RecipeAdvice, explain
from ._fits import Choice, Fit, FittedModel, Method, PyTorchFit, RunCost, WayOut, fit
from ._live import from_trainer
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

__version__ = _version()

__all__ = [
    "Accelerator",
    "Advice",
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
    "models",
    "plan",
    "textbook",
]
