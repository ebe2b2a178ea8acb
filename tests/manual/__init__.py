"""The commands of README and manual, executed as a reader would: page by page, in a fresh folder.

Comments in front of a block, which readers do not see, say what it needs:

| comment | meaning |
|---|---|
| `before: COMMANDS` | what makes the files that the reader has (`given.py`) |
| `file: NAME` | the reader saves the block as this file |
| `instead: COMMANDS` | the same with values for what the block leaves open, or less to compute |
| `not run: REASON` | it needs something that is not here: a board, the vendor's SDK, hours |

Trainings are shortened (`SHORT`): that commands work is tried, not what they reach.
"""
