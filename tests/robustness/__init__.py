"""The network loader on damaged input: it ends in success or in diagnostics, never otherwise.

`python -m tests.robustness` (or `make fuzz`) mutates legal inputs and runs `ai8xize.py` on each;
the test module beside it runs a selection of the same cases. Every case follows from the seed and
its number alone, so that one that failed can be run again.

`starts` holds the legal inputs, with the descriptions of `networks`. `texts`, `arrays`,
`checkpoints` and `models` hold the mutations of each kind of input, `cases` chooses one of them by
number, and `runner` runs it and judges how it ended.
"""
