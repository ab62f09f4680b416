"""Evaluation on data sets of pairs: every finished pair is kept in an SQLite file."""

from __future__ import annotations

from frot.correspondence.evaluation._run import evaluate, read_evaluation
from frot.correspondence.evaluation._table import ResultTable, result_table
from frot.correspondence.evaluation.scores import Evaluation, Record

__all__ = ["Evaluation", "Record", "ResultTable", "evaluate", "read_evaluation", "result_table"]
