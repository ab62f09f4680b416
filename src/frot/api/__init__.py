"""The functions a user calls: solve, solve_costs, distance, solve_batch, pairwise.

Points go in as the user has them; they are checked, made into a problem, given to a solver, and a
`Result` comes out. Section 3 of the paper.
"""
