"""Reasons for stopping."""

from __future__ import annotations

import pytest

from frot import Status


def test_only_convergence_is_ok():
    assert [status for status in Status if status.ok] == [Status.CONVERGED]


@pytest.mark.parametrize("status", list(Status))
def test_each_says_itself_in_a_sentence_and_by_name(status: Status):
    assert status.sentence[0].isupper()
    assert status.sentence.endswith(".")
    assert str(status) == status.name
    assert repr(status) == f"Status.{status.name}"


def test_sentences_differ():
    assert len({status.sentence for status in Status}) == len(Status)
