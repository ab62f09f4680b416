"""The problem with entropy of the plan: Newton and mirror steps on the weights.

A `Problem` with eps > 0 goes in, offers with proven bounds come out; the kernels are `sinkhorn`'s.
Section 3.2 of the paper.
"""
