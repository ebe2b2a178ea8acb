"""Small changes of a description that may be the cure of what is wrong with it.

They are drawn from the text alone, as people make mistakes: what stands in other layers, what a key
takes, spelling, punctuation and indentation. Whoever tries them finds out which one is a cure.
"""

from ai8xtools.synthesis.cure.candidates import applied, candidates

__all__ = ["applied", "candidates"]
