"""The min-max problem and what an answer is.

Costs, weights and an adversary make a `Problem`; `bounds` proves lower and upper bounds for
any plan and any weights; a `Result` says value, interval, status. Equations 1 to 3 of the paper.
"""
