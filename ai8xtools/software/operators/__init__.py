"""From a graph of operators in whole numbers to the steps of a program: no limit of a chip applies.

`exact` makes expressions of what is done with elements. `storage` keeps where values stand, for
`expressed`, `moved`, `weighted` and `windows`, each a family of operators; `lower` goes through a
graph. `joined` puts steps together, `execute` computes them in Python. Source: docs/software.md,
"Graphs".
"""
