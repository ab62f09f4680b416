"""Transport plans: dense, sparse or lazy, behind one protocol, and how to make one feasible.

Arcs, arrays or what computes rows goes in; a `Plan` with products, sums and rows comes out. The
paper's U(a, b) (section 2): `feasible` puts any plan there exactly, `line` solves on a line.
"""
