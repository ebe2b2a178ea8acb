"""What would make a network fit: each remedy is tried, and told with its result.

Source: docs/placement.md, "When nothing fits".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ai8xtools.synthesis.arrange.graph import reading, sources
from ai8xtools.synthesis.arrange.problem import columns_of
from ai8xtools.synthesis.network import Layer, Network, Tensor
from device import Chip, known_chips

Fits = Callable[[Network, Chip], bool]
"""Whether places are found for a changed network on a chip."""

NARROW = 4
LAYERS = 8
"""At most so many layers are changed at once; the first and the last try are told."""


def remedies(
    network: Network,
    chip: Chip,
    layers: Sequence[int],
    of_data: bool,
    fits: Fits,
    *,
    others: bool = True,
) -> Iterator[str]:
    """Yield what was tried and whether it helps; `layers` are those of the proof or near miss.

    `others`: other chips are tried.
    """
    concerned = [network.layer(i) for i in layers] or list(network.executed())
    if of_data:
        yield from _pooling_earlier(network, chip, concerned, fits)
    else:
        yield from _narrow_weights(network, chip, concerned, fits)
        yield from _fewer_channels(network, chip, concerned, fits)
    if others:
        yield from _other_chips(network, chip, fits)


def _name(layer: Layer) -> str:
    return layer.name or f"layer {layer.index}"


def _result(enough: bool) -> str:
    return "fits" if enough else "not enough"


def _with(network: Network, *changed: Layer) -> Network:
    """Return the network with some layers in another form."""
    by_index = {layer.index: layer for layer in changed}
    layers = tuple(by_index.get(layer.index, layer) for layer in network.layers)
    return replace(network, layers=layers)


def _narrow_weights(
    network: Network, chip: Chip, concerned: Sequence[Layer], fits: Fits
) -> Iterator[str]:
    """Narrower weights in the layers with the most columns: one, two, three."""
    wide = [x for x in concerned if x.weights is not None and x.weight_bits > NARROW]
    wide.sort(key=lambda layer: (-columns_of(layer), layer.index))
    most = min(LAYERS, len(wide))
    for count in range(1, most + 1):
        chosen = wide[:count]
        changed = _with(network, *(replace(x, weight_bits=NARROW) for x in chosen))
        enough = fits(changed, chip)
        if enough or count in (1, most):
            yield f"{NARROW}-bit weights in {', '.join(map(_name, chosen))}: {_result(enough)}"
        if enough:
            return


def _fewer_channels(
    network: Network, chip: Chip, concerned: Sequence[Layer], fits: Fits
) -> Iterator[str]:
    """Fewer outputs of the layer with the most columns, down to a half."""
    wide = [x for x in concerned if x.weights is not None and _is_free(network, x)]
    if not wide:
        return
    layer = max(wide, key=columns_of)
    low, high = layer.out_channels // 8 * 4, (layer.out_channels - 1) // 4 * 4
    if low < 1 or high <= low:
        return
    if not fits(_with_channels(network, layer, low), chip):
        yield f"{low} instead of {layer.out_channels} outputs of {_name(layer)}: not enough"
        return
    while high - low >= 4:
        middle = (low + high + 4) // 8 * 4
        if fits(_with_channels(network, layer, middle), chip):
            low = middle
        else:
            high = middle - 4
    yield f"{low} instead of {layer.out_channels} outputs of {_name(layer)}: fits"


def _is_free(network: Network, layer: Layer) -> bool:
    """Whether the outputs of a layer are read by convolutions alone, one by one."""
    readers = [x for x in network.executed() if layer.index in sources(network, x)]
    plain = all(
        reading(network, x).alone and x.has_weights and not (x.depthwise or x.flatten)
        for x in readers
    )
    delivered = any(layer is x for x in network.outputs())
    return plain and bool(readers) and not (delivered or layer.depthwise or layer.buffer_insert)


def _with_channels(network: Network, layer: Layer, count: int) -> Network:
    """Return the network in which a layer has fewer outputs, and its readers fewer inputs."""
    readers = [x for x in network.executed() if layer.index in sources(network, x)]
    fewer = replace(layer, out_channels=count, bias=_cut(layer, count))
    return _with(network, fewer, *(replace(x, in_channels=count) for x in readers))


def _cut(layer: Layer, count: int) -> Tensor | None:
    return None if layer.bias is None else layer.bias[:count]


def _pooling_earlier(
    network: Network, chip: Chip, concerned: Sequence[Layer], fits: Fits
) -> Iterator[str]:
    """Pooling in the layer in front of the one that has it, where its result is too large."""
    for layer in concerned:
        behind = network.following(layer)
        if behind is None or sources(network, behind) != (layer.index,):
            continue
        alone = [x for x in network.executed() if layer.index in sources(network, x)] == [behind]
        if not (alone and behind.pooling.active and behind.pool_first) or behind.combination:
            continue
        moved = _pooled(layer, behind)
        if moved is None:
            continue
        after = replace(
            behind, in_dim=moved.out_dim, pooling=type(behind.pooling)(), pooled_dim=moved.out_dim
        )
        enough = fits(_with(network, moved, after), chip)
        yield (f"the pooling of {_name(behind)} in {_name(layer)} instead: {_result(enough)}")
        return


def _pooled(layer: Layer, behind: Layer) -> Layer | None:
    """Return a layer that pools its input as the layer behind it does; None if it cannot."""
    plain = layer.operator.two_dimensional and not layer.operator.transposed
    same = (layer.in_dim == layer.out_dim) and not layer.pooling.reduces and not layer.combination
    if not (plain and same) or layer.in_dim != behind.in_dim:
        return None
    return replace(
        layer, pooling=behind.pooling, pooled_dim=behind.pooled_dim, out_dim=behind.pooled_dim
    )


def _other_chips(network: Network, chip: Chip, fits: Fits) -> Iterator[str]:
    for other in known_chips():
        if other is not chip:
            yield f"{other.name}: {_result(fits(network, other))}"
