"""The problem with entropy of the plan, in NumPy or PyTorch, alone, in batches, in little memory.

A `Problem` with eps > 0 goes in, offers with proven bounds come out; the sweeps are algorithm 1 of
the paper. Read in this order:

- ``entropic.py``, `Entropic`: the loop, single precision and then double; `EntropicRun`: a problem
  as a batch of one, its engine, and the way back to bounds and plans;
- ``ascent.py``, `Ascent`: mirror steps on alpha, and when Newton steps take over;
- ``newton.py``, `newton_step`: a joint step on potentials and weights;
- ``entropic_problem.py``, `EntropicProblem`: all of a batch of problems but the costs;
- ``point.py``, `Point`: weights, potentials, and the two values that follow;
- ``engine.py``, `Engine`: what an ascent asks of Sinkhorn at given weights; `sweep_to`: the one
  loop of sweeps, with momentum. Three kinds of engine follow:
- ``dense.py``, `DenseEngine`: kernels that are kept;
- ``stream.py``, `StreamEngine`: a pass over blocks of rows;
- ``_fused.py``, `FusedEngine`: the same passes on tensor cores, by ``_fused_triton.py``;
- ``kernel.py``, `form_rows`: rows of kernels and plans, and what a proof asks of them;
- ``certificate.py``, `certify`: the interval, in double precision, from passes over the plan;
- ``clouds.py``, `solve_clouds`: for `FRWDLoss`, two clouds with each other and each with itself;
- ``relabelled.py``, `PoolPotentials`: for `two_sample_test`, divergences under all labellings.
"""
