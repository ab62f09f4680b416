"""Evaluation that survives: every finished pair is in an SQLite file."""

from __future__ import annotations

from frot.correspondence._evaluation._record import Record
from frot.correspondence._evaluation._result import Evaluation, read_evaluation
from frot.correspondence._evaluation._run import evaluate

__all__ = ["Evaluation", "Record", "evaluate", "read_evaluation"]
