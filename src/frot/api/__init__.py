"""The functions a user calls: solve, distance, solve_batch, pairwise, two_sample_test.

Points go in as the user has them; they are checked, made into a problem, given to a solver, and a
`Result` comes out. Section 3 of the paper.

The walk of `solve` is in ARCHITECTURE. That of `two_sample_test`, in the order to read it:

- ``two_sample.py``, `two_sample_test`: the whole call: checks, costs among all points, permutations
  in chunks (``tasks.py``), p-values;
- ``pooled_sample.py``, `PooledSample`: the statistics under labellings: the optimum of `solve` in
  batches, each as far as it takes to tell, and the groups' own, whose Sinkhorn divergences under
  all labellings are products with one kernel (`PoolPotentials` of ``solvers/entropic``);
- ``permutations.py``, `permuted_labels`: labels within blocks, each labelling from the seed and its
  number; p-values, for `selection` too;
- ``two_sample_result.py``, `TwoSampleTest`: what comes out; its picture is ``show/two_sample.py``.
"""
