"""The problem with entropy of the plan: Newton and mirror steps on the weights.

A `Problem` with eps > 0 goes in, offers with proven bounds come out; the kernels are `sinkhorn`'s.
The
paper's algorithm 2 approximates it by Frank-Wolfe steps.
"""
