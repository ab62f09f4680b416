"""Experiments: the paper's figures and tables and our own claims, computed anew with a verdict.

One file each; `experiment` has what they have in common, and keeps what is finished, `command` is
``frot reproduce``, with the list of them and the page that shows all. In go options and data sets,
out come tables, verdicts, pictures. Sections 3 and 4 of the paper.
"""
