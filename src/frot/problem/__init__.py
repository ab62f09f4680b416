"""The min-max problem and what an answer is.

Costs, weights and an adversary make a `Problem`; `bounds` proves lower and upper bounds for
any plan and any weights; a `Result` says value, interval, status. Section 3.1 of the paper,
and lemma 1 of 3.2: the adversary's answer.
"""
