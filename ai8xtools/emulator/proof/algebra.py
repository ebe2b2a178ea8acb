"""Whole numbers and fractions as expressions: two that are equal for all inputs by arithmetic,
limits, rounding or tables look alike, however they were made.

A value is a function of one whole number n = factor * sum + offset. The sum is a polynomial of
bytes of the input and of values that nothing looks into; its expression is its remainder at random
arguments, see `fingerprints`. Where values of different sums meet in anything but sums and
products, functions are replaced by what their pieces tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.proof.fingerprints import LANES, PRIME, Fingerprints, Mixer
from ai8xtools.emulator.proof.functions import Functions, Integers, Numbers
from ai8xtools.emulator.proof.kernels import departure
from ai8xtools.values import frozen

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Some = NDArray[np.int64] | NDArray[np.bool_]
_LARGEST_NORM = 2.0**29
"""Of the magnitudes of coefficients: differences of two sums are below the prime."""
_LARGEST = 2.0**62
_EXACT = 2.0**52
_NEARLY = 1 + 2.0**-50


@frozen
class Terms:
    """Values [value]: `function` of factor * sum + offset, of which `sums` has the expressions
    [value, lane]; a sum is from `low` to `high`, its coefficients' magnitudes add up to `norm`.
    """

    sums: Fingerprints
    factor: Integers
    offset: Integers
    function: Integers
    low: Floats
    high: Floats
    norm: Floats

    def __len__(self) -> int:
        return len(self.factor)

    def take(self, places: Some) -> Terms:
        """Return values by number."""
        return Terms(*(getattr(self, one.name)[places] for one in fields(self)))

    def put(self, places: Some, values: Terms) -> None:
        """Replace values by number."""
        for one in fields(self):
            getattr(self, one.name)[places] = getattr(values, one.name)


def joined(parts: Sequence[Terms]) -> Terms:
    """Return values one behind another."""
    names = [one.name for one in fields(Terms)]
    return Terms(*(np.concatenate([getattr(one, name) for one in parts]) for name in names))


class Algebra:
    """Computes with values; raises EmulatorError for what leads too far."""

    def __init__(self, mixer: Mixer) -> None:
        self.mixer, self.functions = mixer, Functions()
        self.whole = self.functions.over(1)

    def leaves(self, sums: Fingerprints, low: Floats, high: Floats) -> Terms:
        """Return whole numbers that nothing looks into, from `low` to `high`."""
        n = len(sums)
        ones = np.ones(n, np.int64)
        return Terms(sums, ones, 0 * ones, np.full(n, self.whole), low, high, np.ones(n))

    def constants(self, values: Floats | Integers) -> Terms:
        """Return constants. Raises EmulatorError for other than multiples of powers of two."""
        flat = np.asarray(values).ravel()
        whole, over = Numbers(flat.astype(np.float64), 0).whole()
        n, none = len(flat), np.zeros(len(flat))
        zero = np.zeros(n, np.int64)
        function = np.full(n, self.functions.over(over))
        return Terms(np.zeros((n, LANES), np.int64), zero, whole, function, none, none.copy(),
                     none.copy())  # fmt: skip

    def added(self, one: Terms, two: Terms) -> Terms:
        """Return sums."""
        return self._joined("add", one, two, self._sums)

    def times(self, one: Terms, two: Terms) -> Terms:
        """Return products."""
        return self._joined("mul", one, two, self._products)

    def largest(self, one: Terms, two: Terms) -> Terms:
        """Return the larger ones."""

        def apart(a: Terms, b: Terms) -> Terms:
            places = np.arange(2 * len(a)).reshape(2, -1).T
            return self.maxima(joined([a, b]), places)

        return self._joined("max", one, two, apart)

    def smallest(self, one: Terms, two: Terms) -> Terms:
        """Return the smaller ones."""

        def apart(a: Terms, b: Terms) -> Terms:
            return self.negative(self.largest(self.negative(a), self.negative(b)))

        return self._joined("min", one, two, apart)

    def negative(self, one: Terms) -> Terms:
        """Return negative values."""
        return self.scaled(one, -1, 1)

    def scaled(self, one: Terms, factor: int, over: int) -> Terms:
        """Return values times factor / over."""
        return self.times(one, _like(self.constants(np.array([factor])), one, self, over))

    def over(self, one: Terms, divisors: Floats | Integers) -> Terms:
        """Return values divided by constants."""
        parts = self.constants(divisors)
        top = self._divisors(parts)
        parts.function[:] = _by_value(np.abs(parts.offset), self.functions.over)
        parts.offset[:] = top * np.sign(parts.offset)
        return self.times(one, parts)

    def sign(self, one: Terms) -> Terms:
        """Return -1, 0 or 1."""
        plain = self._plain(one)
        ends = (self.constants(np.full(len(one), end)) for end in (-1, 1))
        least, most = ends
        return self.smallest(self.largest(_whole(plain, self.whole), least), most)

    def is_small(self, one: Terms) -> bool:
        """Whether all values are functions of few numbers."""
        return bool(self._is_small(one).all())

    def floor(self, one: Terms) -> Terms:
        """Return the greatest whole numbers that are no larger."""
        return self._of("floor", one)

    def root(self, one: Terms) -> Terms:
        """Return the whole parts of square roots of whole parts."""
        if self.is_small(one):
            return self._of("root", one)
        values, over = self.numerators(self.floor(one))
        if (over != 1).any() or (values.low < 0).any():
            raise departure("a root is taken of what may be negative")
        sums = self.mixer.of("root", values.sums)
        return self.leaves(sums, np.floor(np.sqrt(values.low)), np.ceil(np.sqrt(values.high)))

    def looked_up(self, one: Terms, table: Integers) -> Terms:
        """Return what a table [256] has for values from -128 to 127; that of -1 stands last."""
        return self._of("look", one, table.astype(np.int64).tobytes())

    def called(self, name: str, function: Callable[..., Floats], one: Terms) -> Terms:
        """Return what a function of floating point, which a name tells, makes of values."""
        numbers = self.functions
        return self._mapped(one, lambda inner: numbers.called(name, function, inner))

    def quotient(self, top: Terms, bottom: Terms) -> Terms:
        """Return whole parts of quotients of whole numbers; what divides is above 0."""
        if not self._constant(bottom).all():
            return self.divided(top, bottom)
        if (bottom.offset < 1).any() or (bottom.function != self.whole).any():
            raise departure("something is divided by what may be 0 or less")
        return self.floor(self.over(top, bottom.offset.astype(np.float64)))

    def divided(self, top: Terms, bottom: Terms) -> Terms:
        """Return whole parts of quotients; what divides is above 0."""
        values, over = self.numerators(top)
        by, other = self.numerators(bottom)
        if (by.low < 1).any():
            raise departure("something is divided by what may be 0 or less")
        values = _multiplied(values, other)
        by = _multiplied(by, over)
        ends = np.stack([a // b for a in (values.low, values.high) for b in (by.low, by.high)])
        both = self.mixer.of("dividend", values.sums) + self.mixer.of("divisor", by.sums)
        sums = self.mixer.of("quotient", both % PRIME)
        return self.leaves(sums, ends.min(axis=0) - 1, ends.max(axis=0) + 1)

    def maxima(self, values: Terms, places: Places) -> Terms:
        """Return the greatest of the values at places [result, value], where these are not -1."""
        used, inverse = np.unique(places, return_inverse=True)
        inverse = inverse.reshape(places.shape)
        known, over = self.numerators(values.take(np.maximum(used, 0)))
        common = np.lcm.reduce(over[used >= 0], initial=1)
        known = _multiplied(known, common // over)
        marks = self.mixer.of("operand", known.sums)
        marks[used < 0] = 0
        known.low[used < 0], known.high[used < 0] = -np.inf, -np.inf
        count = (places >= 0).sum(axis=1)
        if not count.all():
            raise departure("the greatest of no values is taken")
        total = np.zeros((len(places), LANES), np.int64)
        for column in inverse.T:
            total += marks[column]
        result = self._over(
            self.leaves(
                self.mixer.of("max", total % PRIME), known.low[inverse].max(axis=1),
                known.high[inverse].max(axis=1),
            ), int(common),
        )  # fmt: skip
        alone = count == 1
        if alone.any():
            result.put(alone, values.take(places[alone].max(axis=1)))
        return result

    def totals(self, values: Terms, places: Places) -> Terms:
        """Return the sums of the values at places [result, value], where these are not -1."""
        used, inverse = np.unique(places, return_inverse=True)
        inverse = inverse.reshape(places.shape)
        known, over = self.numerators(values.take(np.maximum(used, 0)))
        common = int(np.lcm.reduce(over[used >= 0], initial=1))
        known = _multiplied(known, common // over)
        for one in (known.sums, known.low, known.high, known.norm):
            one[used < 0] = 0
        n = len(places)
        sums, ends = np.zeros((n, LANES), np.int64), np.zeros((3, n))
        for column in inverse.T:
            sums += known.sums[column]
            ends += np.stack([known.low[column], known.high[column], known.norm[column]])
        ones = np.ones(n, np.int64)
        result = Terms(sums % PRIME, ones, 0 * ones, np.full(n, self.functions.over(common)),
                       ends[0], ends[1], ends[2])  # fmt: skip
        return _checked(result)

    def weighted(
        self,
        compute: Callable[[Floats, Floats], Floats],
        values: Terms,
        weights: Floats,
        offset: Floats,
        filters: Places,
    ) -> Terms:
        """Return sums of products: `compute` makes them of values [value] and weights, those of an
        output one behind another; `offset` [output] is added, `filters` tells which weights made
        an output [output].
        """
        known, over = self.numerators(values)
        common = int(np.lcm.reduce(over, initial=1))
        known = _multiplied(known, common // over)
        flat, scale = Numbers(weights.ravel(), 0).whole()
        rows = flat.reshape(len(weights), -1)
        shared = np.maximum(np.gcd.reduce(rows, axis=1), 1)
        plain = (rows // shared[:, None]).reshape(weights.shape).astype(np.float64)
        sizes = np.abs(plain)
        norm = compute(known.norm, sizes)
        if norm.max(initial=0) >= _LARGEST_NORM or sizes.reshape(len(sizes), -1).sum(
            axis=1
        ).max(initial=0) >= 2**22:  # fmt: skip
            raise departure("the magnitudes of weights add up to 2^22 or more")
        lanes = [compute(known.sums[:, lane].astype(np.float64), plain) for lane in range(LANES)]
        above, below = np.maximum(plain, 0), np.minimum(plain, 0)
        low = compute(known.low, above) + compute(known.high, below)
        high = compute(known.high, above) + compute(known.low, below)
        sums = np.stack(lanes, axis=-1).astype(np.int64) % PRIME
        n = len(sums)
        function = np.full(n, self.functions.over(common * scale))
        zeros = np.zeros(n, np.int64)
        result = Terms(sums, shared[filters], zeros, function, low, high, norm)
        return self.added(_checked(result), self.constants(offset))

    def bounds(self, values: Terms) -> tuple[Floats, Floats]:
        """Return the least and the greatest of what values can be."""
        ends = np.sort(np.stack([values.low, values.high]) * values.factor, axis=0) + values.offset
        low, high = ends.copy()
        for function in np.unique(values.function).tolist():
            some = values.function == function
            low[some], high[some] = self.functions.ends(function, *ends[:, some])
        return low, high

    def numerators(self, values: Terms) -> tuple[Terms, Integers]:
        """Return whole numbers that are sums, and what they are divided by."""
        plain = self._plain(values)
        divisors = self._divisors(plain)
        shared = np.maximum(np.gcd(np.gcd(plain.factor, plain.offset), divisors), 1)
        factor, offset = plain.factor // shared, plain.offset // shared
        sums = plain.sums * _residues(factor)[:, None] % PRIME
        sums = (sums + _residues(offset)[:, None] * self.mixer.one) % PRIME
        ends = np.sort(np.stack([plain.low * factor, plain.high * factor]), axis=0) + offset
        norm = plain.norm * np.abs(factor) + np.abs(offset)
        ones = np.ones(len(plain), np.int64)
        result = Terms(sums, ones, 0 * ones, np.full(len(ones), self.whole), ends[0], ends[1],
                       norm)  # fmt: skip
        return _checked(result), divisors // shared

    def _plain(self, values: Terms) -> Terms:
        """Return values that are sums over a number: functions become what their pieces tell."""
        bent = ~self._is_sum(values)
        if not bent.any():
            return values
        result = values.take(np.arange(len(values)))
        for function in np.unique(values.function[bent]).tolist():
            places = np.flatnonzero(values.function == function)
            self._replace(function, values.take(places), places, result)
        return result

    def _replace(self, function: int, values: Terms, places: Places, result: Terms) -> None:
        turned = values.factor < 0
        values.put(turned, _turned(values.take(turned)))
        ends = np.stack([values.low, values.high]) * values.factor + values.offset
        reach = float(np.abs(ends).max(initial=0))
        pieces = self.functions.pieces(function, int(reach)) if reach < _LARGEST else None
        if pieces is None:
            return self._unseen(function, values, places, result)
        begins, numbers = pieces
        ends = np.clip(ends, begins[min(1, len(begins) - 1)] - 1.0, float(begins[-1]))
        columns = np.stack([values.factor, values.offset, *ends.astype(np.int64)])
        _, group = np.unique(columns, axis=1, return_inverse=True)
        group = group.reshape(-1)
        order = np.argsort(group, kind="stable")
        for some in np.split(order, np.cumsum(np.bincount(group))[:-1]):
            one = values.take(some)
            result.put(places[some], self._by_pieces(one, begins, numbers))
        return None

    def _by_pieces(self, values: Terms, begins: Integers, numbers: Numbers) -> Terms:
        """Return values of the same factor and offset, and of the same pieces."""
        factor, offset = int(values.factor[0]), int(values.offset[0])
        low, high = float(values.low.min()), float(values.high.max())
        if factor == 0:
            at = int(np.searchsorted(begins, offset, "right")) - 1
            found = Numbers(numbers.values[at : at + 1], numbers.over)
            return _like(self.constants(found.floats), values, self)
        starts = -((offset - begins[1:]) // factor)  # the least sum of each piece but the first
        first, last = np.searchsorted(starts, [low, high], "right").tolist()
        starts = starts[first:last]
        kept = np.append(np.flatnonzero(np.diff(starts)), len(starts) - 1)[: len(starts)]
        parts = Numbers(numbers.values[np.append(first, first + 1 + kept)], numbers.over)
        whole, over = parts.whole()
        starts = starts[kept]
        changes = np.flatnonzero(np.diff(whole))
        starts, whole = starts[changes], np.append(whole[0], whole[changes + 1])
        n = len(values)
        if not len(starts):
            return _like(self.constants(np.array([whole[0] / over])), values, self)
        if values.norm.max() + abs(int(starts[0])) >= _LARGEST_NORM:
            raise departure("the magnitudes of coefficients add up to 2^29 or more")
        moved = values.sums - _residues(starts[:1])[:, None] * self.mixer.one
        steps = np.diff(whole)
        factor_of = int(np.gcd.reduce(steps) * np.sign(steps[0]))
        plain = (whole - whole[0]) // factor_of  # from 0 on, upwards at first
        name = "pieces", (starts - starts[0]).tobytes(), plain.tobytes()
        sums = self.mixer.of(name, moved % PRIME)
        made = self.leaves(sums, np.full(n, float(plain.min())), np.full(n, float(plain.max())))
        made.factor[:], made.offset[:] = factor_of, whole[0]
        rises = np.unique(np.diff(whole))
        if len(rises) == 1 and (np.diff(starts) == 1).all():  # factor * sum + offset again
            even = (values.low == starts[0] - 1) & (values.high == starts[-1])
            made.put(even, values.take(even))
            made.factor[even] = rises[0]
            made.offset[even] = whole[0] - rises[0] * (starts[0] - 1)
            made.function[even] = self.whole
        return self._over(made, over)

    def _unseen(self, function: int, values: Terms, places: Places, result: Terms) -> None:
        """Put values of a function with too many pieces."""
        for factor, offset in np.unique([values.factor, values.offset], axis=1).T.tolist():
            some = (values.factor == factor) & (values.offset == offset)
            plain = _whole(values.take(some), self.whole)
            plain.factor[:], plain.offset[:] = 1, 0
            inner = self.functions.moved(function, factor, offset)
            ends, over = self._ends(inner, plain)
            made = self.leaves(self.mixer.of(("function", inner), plain.sums), *ends)
            result.put(places[some], self._over(made, over))

    def _ends(self, function: int, values: Terms) -> tuple[tuple[Floats, Floats], int]:
        """Return least and greatest values of a function that never turns back."""
        ends = [self.functions.value(function, one.astype(np.int64).astype(object))
                for one in (values.low, values.high)]  # fmt: skip
        over = ends[0].over
        if self.functions.direction(function) is None or not over:
            raise departure("a function of sums of 32 bits is not followed")
        first, second = (one.values.astype(np.float64) for one in ends)
        return (np.minimum(first, second), np.maximum(first, second)), over

    def _over(self, values: Terms, over: int) -> Terms:
        """Return whole numbers over a number."""
        if over != 1:
            values.function[:] = self.functions.over(over)
        return values

    def _is_small(self, values: Terms) -> NDArray[np.bool_]:
        return (values.high - values.low) < 2**16

    def _of(self, name: str, values: Terms, *settings: object) -> Terms:
        def made(inner: int) -> int:
            if name == "floor" and self.functions.divisor(inner) == 1:
                return inner
            return self.functions.made(name, (inner,), *settings)

        return self._mapped(values, made)

    def _mapped(self, values: Terms, make: Callable[[int], int]) -> Terms:
        function = _by_value(values.function, make)
        return Terms(values.sums, values.factor, values.offset, function, values.low, values.high,
                     values.norm)  # fmt: skip

    def _joined(
        self, name: str, one: Terms, two: Terms, apart: Callable[[Terms, Terms], Terms]
    ) -> Terms:
        """Return what is made of two values: a function, if both are ones of the same sum."""
        constant = (self._constant(one), self._constant(two))
        same = constant[0] | constant[1] | (one.sums == two.sums).all(axis=1)
        both = self._is_sum(one) & self._is_sum(two)
        if name == "add":
            same &= ~both
        if name == "mul":
            same &= ~(both & (constant[0] | constant[1] | ~self._is_small(one)))
        if same.all():
            return self._alike(name, one, two)
        if not same.any():
            return apart(one, two)
        result = one.take(np.arange(len(one)))
        result.put(same, self._alike(name, one.take(same), two.take(same)))
        result.put(~same, apart(one.take(~same), two.take(~same)))
        return result

    def _constant(self, values: Terms) -> NDArray[np.bool_]:
        return np.asarray(self._is_sum(values) & (values.factor == 0))

    def _is_sum(self, values: Terms) -> NDArray[np.bool_]:
        """Tell which values are sums over a number, without another function."""
        divides = self.functions.divisor
        return _by_value(values.function, lambda one: divides(one) is not None).astype(np.bool_)

    def _divisors(self, values: Terms) -> Integers:
        """Return what sums are divided by."""
        return _by_value(values.function, lambda one: self.functions.divisor(one) or 1)

    def _alike(self, name: str, one: Terms, two: Terms) -> Terms:
        """Return functions of one sum each, of which at least one value has some."""
        swapped = self._constant(one)
        base = one.take(np.arange(len(one)))
        base.put(swapped, two.take(swapped))
        equal = (one.factor == two.factor) & (one.offset == two.offset)
        equal |= self._constant(one) | self._constant(two)
        base.factor[~equal], base.offset[~equal] = 1, 0
        keys = np.stack([self._key(each, equal) for each in (one, two)])
        rows = keys.transpose(0, 2, 1).reshape(-1, len(one))
        columns, group = np.unique(rows, axis=1, return_inverse=True)
        made = [
            self.functions.made(name, (self._function(*column[:4]), self._function(*column[4:])))
            for column in columns.T.tolist()
        ]
        base.function[:] = np.array(made, np.int64)[group.reshape(-1)]
        return base

    def _key(self, values: Terms, equal: NDArray[np.bool_]) -> Integers:
        """Return what tells a function [value, 4]: that, factor and offset, whether constant."""
        constant = self._constant(values)
        plain = equal & ~constant
        factor = np.where(plain, 1, values.factor)
        offset = np.where(plain, 0, values.offset)
        return np.stack([values.function, factor, offset, constant], axis=1)

    def _function(self, function: int, factor: int, offset: int, constant: int) -> int:
        if constant:
            return self.functions.constant(offset, self.functions.divisor(function) or 1)
        return self.functions.moved(function, factor, offset)

    def _sums(self, one: Terms, two: Terms) -> Terms:
        one, two = self._plain(one), self._plain(two)
        divisors = [self._divisors(each) for each in (one, two)]
        common = np.lcm(divisors[0], divisors[1])
        factors = [
            _fit(each.factor, common // by) for each, by in zip((one, two), divisors, strict=True)
        ]
        offset = sum(_fit(each.offset, common // by)
                     for each, by in zip((one, two), divisors, strict=True))  # fmt: skip
        same = (one.sums == two.sums).all(axis=1)
        shared = np.gcd(*factors)
        shared = np.where(shared == 0, 1, shared)
        parts = [_part(each, factor // shared) for each, factor in
                 zip((one, two), factors, strict=True)]  # fmt: skip
        result = Terms(
            (parts[0].sums + parts[1].sums) % PRIME, shared, np.asarray(offset),
            _by_value(common, self.functions.over), parts[0].low + parts[1].low,
            parts[0].high + parts[1].high, parts[0].norm + parts[1].norm,
        )  # fmt: skip
        if same.any():  # the sum stays what it is
            result.sums[same], result.norm[same] = one.sums[same], one.norm[same]
            result.low[same], result.high[same] = one.low[same], one.high[same]
            result.factor[same] = (factors[0] + factors[1])[same]
        for each, other, factor in ((one, two, factors[1]), (two, one, factors[0])):
            alone = (each.factor == 0) & (other.factor != 0)
            if alone.any():
                for name in ("sums", "low", "high", "norm"):
                    getattr(result, name)[alone] = getattr(other, name)[alone]
                result.factor[alone] = factor[alone]
        return _checked(result)

    def _products(self, one: Terms, two: Terms) -> Terms:
        one, two = self._plain(one), self._plain(two)
        divisors = [self._divisors(each) for each in (one, two)]
        over = _by_value(_fit(*divisors), self.functions.over)
        result = one.take(np.arange(len(one)))
        result.function[:] = over
        done = np.zeros(len(one), np.bool_)
        for each, other in ((one, two), (two, one)):
            some = (other.factor == 0) & ~done
            if some.any():
                part = each.take(some)
                times = other.offset[some]
                result.put(some, Terms(part.sums, _fit(part.factor, times),
                                       _fit(part.offset, times), over[some], part.low, part.high,
                                       part.norm))  # fmt: skip
            done |= some
        if not done.all():
            each_part = [_whole(each.take(~done), self.whole) for each in (one, two)]
            shared = [np.maximum(np.gcd(each.factor, each.offset), 1) for each in each_part]
            for each, by in zip(each_part, shared, strict=True):
                each.factor[:] //= by
                each.offset[:] //= by
            left, right = (self.numerators(each)[0] for each in each_part)
            ends = np.stack([a * b for a in (left.low, left.high) for b in (right.low, right.high)])
            result.put(~done, Terms(left.sums * right.sums % PRIME, _fit(*shared), 0 * shared[0],
                                    over[~done], ends.min(axis=0), ends.max(axis=0),
                                    left.norm * right.norm))  # fmt: skip
        return _checked(result)


def _whole(values: Terms, function: int) -> Terms:
    """Return what is divided, without what it is divided by."""
    return Terms(values.sums, values.factor, values.offset, np.full(len(values), function),
                 values.low, values.high, values.norm)  # fmt: skip


def _like(one: Terms, values: Terms, algebra: Algebra, over: int = 1) -> Terms:
    """Return a constant as often as there are values, over a number."""
    many = one.take(np.zeros(len(values), np.int64))
    if over != 1:
        many.function[:] = algebra.functions.over(over)
    return many


def _part(values: Terms, factor: Integers) -> Terms:
    """Return a sum times a factor."""
    ends = np.sort(np.stack([values.low * factor, values.high * factor]), axis=0)
    return Terms(values.sums * _residues(factor)[:, None] % PRIME, values.factor, values.offset,
                 values.function, ends[0], ends[1], values.norm * np.abs(factor))  # fmt: skip


def _turned(values: Terms) -> Terms:
    """Return the same values by the negative of their sums."""
    return Terms(-values.sums % PRIME, -values.factor, values.offset, values.function,
                 -values.high, -values.low, values.norm)  # fmt: skip


def _multiplied(values: Terms, factor: Integers) -> Terms:
    """Return whole numbers that are sums times a factor above 0."""
    part = _part(values, np.broadcast_to(factor, len(values)))
    return _checked(part)


def _checked(values: Terms) -> Terms:
    """Return values whose sums can be told apart, with ends that hold in spite of rounding."""
    if values.norm.max(initial=0) >= _LARGEST_NORM:
        raise departure("the magnitudes of coefficients add up to 2^29 or more")
    for end, sign in ((values.low, -1), (values.high, 1)):
        rough = np.abs(end) >= _EXACT
        if rough.any():
            end[rough] += sign * np.abs(end[rough]) * (_NEARLY - 1)
    return values


def _fit(one: Integers, two: Integers) -> Integers:
    """Return products. Raises EmulatorError if they leave 62 bits."""
    if (np.abs(one.astype(np.float64) * two) >= _LARGEST).any():
        raise departure("numbers of more than 62 bits are computed with")
    return np.asarray(one * two)


def _residues(values: Integers) -> Integers:
    return np.asarray(values % PRIME)


def _by_value(numbers: Integers, tell: Callable[[int], int]) -> Integers:
    """Return what is told of each number."""
    if len(numbers) and (numbers == numbers[0]).all():
        return np.full(len(numbers), tell(int(numbers[0])))
    some, inverse = np.unique(numbers, return_inverse=True)
    return np.array([tell(one) for one in some.tolist()], np.int64)[inverse.reshape(-1)]
