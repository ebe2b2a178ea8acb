"""What `ai8x` is made of; models import `ai8x`, which has all names, and not this package.

`composition` holds the composition of a layer, `operators` its forms with an operator,
`named_layers` the public names derived from them; `chips`, `limits` and `rounding` are what these
rest on.
"""
