"""The problem without entropy of the plan, to its optimum, on a few arcs at a time.

A `Problem` goes in, offers of plans and weights with proven bounds come out. The linear program
of section 3.2 of the paper, which has all arcs at once.
"""
