"""Evaluation that survives: every finished pair is in an SQLite file."""

from __future__ import annotations

from frot.correspondence._evaluation._kept import Record
from frot.correspondence._evaluation._result import Evaluation, read_evaluation
from frot.correspondence._evaluation._run import evaluate
from frot.correspondence._evaluation._summary import result_table
from frot.correspondence._evaluation._table import ResultTable

__all__ = ["Evaluation", "Record", "ResultTable", "evaluate", "read_evaluation", "result_table"]
