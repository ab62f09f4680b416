"""The entropic problem in NumPy or PyTorch, alone, in batches and in little memory.

Costs, weights and eps go in; scaled kernels, potentials and certificates come out. The sweeps of
algorithm 1 of the paper, dense, streamed in blocks of rows, or on a device.
"""
