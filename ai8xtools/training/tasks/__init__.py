"""Tasks of networks: loss, quality measure, order of results, lines of the log.

`task` is what all have in common, `classification` (also of each pixel), `regression`, `detection`
and `embedding` are the kinds, `choice` finds out which one a data set and the options mean.
"""
