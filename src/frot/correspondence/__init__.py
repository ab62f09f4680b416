"""Semantic correspondence: two photographs, every layer of a network, nothing to pick."""
