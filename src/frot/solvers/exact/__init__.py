"""The problem without entropy of the plan, to its optimum, on a few arcs at a time.

A `Problem` goes in, offers of plans and weights with proven bounds come out. Section 3.1 of the
paper, which solves a linear program of all arcs.
"""
