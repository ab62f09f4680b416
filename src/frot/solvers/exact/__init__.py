"""The problem without entropy of the plan, to its optimum, on a few arcs at a time.

A `Problem` goes in, offers of plans and weights with proven bounds come out. The linear program
of section 3.2 of the paper, which has all arcs at once.

- ``exact.py``, `Exact`: which algorithm; `interior_point`: restrict, step, price, let in, stop;
  `Restricted`: pricing, arcs and groups that enter, the vertex by HiGHS;
- ``seed.py``: the first arcs and groups, and a point inside;
- ``interior.py``, `Interior`: the predictor-corrector method;
- ``column_generation.py``, `column_generation`: few points and groups, over mixtures of plans.
"""
