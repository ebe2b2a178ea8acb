"""Networks as a small typed graph of operators, on which doors land and from which targets lower.

`operators` says what there is, `nodes` puts it together, `execute` computes it in float64,
`passes` rewrites it.
"""
