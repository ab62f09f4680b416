"""What every other room is built on: errors, arrays, checks, files, workers. No transport.

Errors, arrays of NumPy and PyTorch, checks of arguments, files, tables, the store that survives a
crash (SQLite), deadlines, interrupts, work in parallel. Plain values go in and come out, checked.
Nothing here imports another room. No section of the paper: this is what makes long runs safe.
"""
