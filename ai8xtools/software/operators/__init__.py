"""From a graph of operators in whole numbers to the steps of a program: no limit of a chip applies.

`exact` makes expressions of what is done with elements, `lower` steps of all else, `joined` puts
steps together, `execute` computes steps in Python. Source: docs/software.md, "Graphs".
"""
