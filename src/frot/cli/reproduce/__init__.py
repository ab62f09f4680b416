"""Experiments: the paper's figures and tables and our own claims, computed anew with a verdict.

`registry` lists them, one file each; `experiment` says what they have in common, `resume` keeps
what is finished, `command` is ``frot reproduce``, `page` shows all on one page. In go options and
data sets, out come tables, verdicts, pictures. Sections 3 and 4 of the paper.
"""
