"""Evaluation that survives: every finished pair is in an SQLite file."""

from __future__ import annotations

from frot.correspondence.evaluation._kept import Record
from frot.correspondence.evaluation._result import Evaluation, read_evaluation
from frot.correspondence.evaluation._run import evaluate
from frot.correspondence.evaluation._summary import result_table
from frot.correspondence.evaluation._table import ResultTable

__all__ = ["Evaluation", "Record", "ResultTable", "evaluate", "read_evaluation", "result_table"]
