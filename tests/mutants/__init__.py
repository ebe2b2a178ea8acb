"""Defects planted one at a time, and whether the tests notice: `make mutants`.

`--count` mutants are drawn at random from the rooms that compute, spread over them by lines of
code; the tree and `--seed` determine which. Each is written into a copy of the tree without the
folder of known answers, and the nearest tests that execute its line run until one fails.

    make mutants ARGS="--count 400 --seed 1"                # a campaign
    make mutants ARGS="--rooms synthesis/encode --count 20" # some rooms
    make mutants ARGS="--list tests/mutants/planned.toml"   # defects written down
    make mutants ARGS="--seed 1 --draw drawn.json"          # draw only; --list drawn.json runs them
    make mutants ARGS="--uncovered"                         # statements that no test executes

Python is changed by the operators of cosmic-ray (`pythons.py`), C by a few of our own (`cs.py`).
A list, in TOML or JSON, has a table `defect` for each one: `file`, `old` (text that stands once in
the file; with `line`, the lines from there on), `new`, and perhaps `why` and `room`.
`equivalent.toml` lists mutants that change nothing: `file`, `old` and `new` (the lines that change,
without the blanks at both ends) and `why`; the lines may move.

What could change nothing but wording, or states only what cannot happen, is not drawn: docstrings,
strings, comments, f-strings; annotations and names of types; arguments of what ends in Error, of
warnings, log and print; `__repr__`, `__str__`; `if TYPE_CHECKING` and `__main__`; assertions,
`assert_never`, `strict=` of zip; `frozen=`, `slots=` and the like of dataclasses; caches, which
only save time; `|` and `^` for `+`; `<=` for `<` where the smaller of two is taken; in C comments,
strings (save assembly), `#include` and `#if`. Nor are files of wording alone drawn (`errors.py`,
`report.py`).

Which tests execute a line is measured by coverage, once for each file of tests, and kept in
build/mutants (or `--map FILE`): files of tests that changed are measured anew, lines that moved in
the code are found again by their text; `--measure all` begins anew. C is attributed to the tests
that open the file or hand it to a compiler. A test that takes ten times its time, and 20 s at
least, counts as failing, as does one that waits for nothing for two minutes; after `--seconds` of
processor time (60) a mutant has survived. Tests marked slow are not used, and tests that fail
without a mutant are left out and named: where the tree or the machine are not those of the
measurement, each test that fails is tried without the mutant as well.
"""
