"""Time limits that reach the loops below them."""

from __future__ import annotations

import math

import pytest

from frot import InputError
from frot._base.stopping import (
    DeadlineError,
    check_deadline,
    check_limits,
    deadline,
    no_deadline,
    seconds_left,
)


def test_without_a_limit_there_is_no_end():
    assert seconds_left() == math.inf
    check_deadline()


def test_none_leaves_the_limit_of_whoever_is_outside():
    with deadline(60.0), deadline(None):
        assert 0.0 < seconds_left() <= 60.0


def test_the_sooner_one_counts():
    with deadline(1e-9), deadline(60.0):
        assert seconds_left() == 0.0
        with pytest.raises(DeadlineError):
            check_deadline()


def test_a_limit_ends_with_its_block_even_by_an_error():
    with pytest.raises(ZeroDivisionError), deadline(1e-9):
        raise ZeroDivisionError
    check_deadline()


def test_the_last_proof_may_finish():
    with deadline(1e-9), no_deadline():
        check_deadline()


def test_limits_are_checked_together():
    assert check_limits(0.1, 3.0, None) == (0.1, 3, None)
    with pytest.raises(InputError, match="time_limit: must be finite and > 0"):
        check_limits(0.1, 3, 0.0)
