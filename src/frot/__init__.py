"""Feature-robust optimal transport."""

__version__ = "0.1.0"
