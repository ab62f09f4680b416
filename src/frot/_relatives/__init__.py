"""Relatives of feature-robust transport, all behind the same result."""
