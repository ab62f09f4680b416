"""Lists of names in messages, checked for repeats, and made distinct."""

from frot._base.names import distinct, first_repeated, quote_some


def test_few_are_quoted_and_the_rest_counted():
    assert quote_some(["a", "b", "c"], limit=2) == "'a', 'b' and 1 more"
    assert quote_some(["a", "b"]) == "'a', 'b'"


def test_the_first_that_occurs_again():
    assert first_repeated(["a", "b", "b", "a"]) == "b"
    assert first_repeated(["a", "b"]) is None


def test_repeats_are_numbered_and_take_no_name_that_is_there():
    assert distinct(["TP53", "MYC", "TP53", "TP53"]) == ["TP53", "MYC", "TP53#2", "TP53#3"]
    assert distinct(["a", "a#2", "a"]) == ["a", "a#2", "a#3"]
