"""Second stage: a description, weights, a sample and a chip become a `Network`.

Channels, sizes, output maps and shifts are inferred here; afterwards nothing is a default any more.
Source: spec/network-description.md sections 1.4 and 1.5.
"""

from synthesis.resolve.network import Resolution, resolve, resolve_what_is_sound

__all__ = ["Resolution", "resolve", "resolve_what_is_sound"]
