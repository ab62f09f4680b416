"""Groups of features, by name.

Prefixes, gene sets (.gmt), tables, ranges or arrays go in; `Groups` comes out: names and the
columns of each. The paper's L groups (section 3).
"""
