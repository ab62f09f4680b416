"""What every other room stands on and what knows nothing of transport: `store`, `tables`.

In come paths, arrays and plain values; out come the same, checked. Nothing here imports a module
that solves, draws or matches. No section of the paper: this is what makes long runs of it safe to
interrupt, and its data readable.
"""
