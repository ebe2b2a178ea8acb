"""Elastic networks for `train.py --nas`: one training for many networks of different size.

A model is a class derived from `OnceForAll2DSequentialModel` or `OnceForAll1DSequentialModel` that
says how many units it has and the largest depth, width and kernel of each.
Source: docs/architecture-search.md.
"""

from __future__ import annotations

from ai8xtools.layers.elastic.fixed import PlainLayer, SequentialNetwork
from ai8xtools.layers.elastic.networks import (
    OnceForAll1DSequentialModel,
    OnceForAll1DSequentialUnit,
    OnceForAll2DSequentialModel,
    OnceForAll2DSequentialUnit,
    OnceForAllSequentialModel,
    OnceForAllSequentialUnit,
)
from ai8xtools.layers.elastic.operators import (
    ElasticBatchNorm1d,
    ElasticBatchNorm2d,
    ElasticConv1d,
    ElasticConv2d,
    ElasticLinear,
)
from ai8xtools.layers.elastic.space import (
    Architecture,
    LayerChoice,
    SearchSpace,
    Stage,
    UnitSpace,
    architecture_of,
)

__all__ = [
    "OnceForAll1DSequentialModel",
    "OnceForAll1DSequentialUnit",
    "OnceForAll2DSequentialModel",
    "OnceForAll2DSequentialUnit",
    "OnceForAllSequentialModel",
    "OnceForAllSequentialUnit",
    "Architecture",
    "ElasticBatchNorm1d",
    "ElasticBatchNorm2d",
    "ElasticConv1d",
    "ElasticConv2d",
    "ElasticLinear",
    "LayerChoice",
    "PlainLayer",
    "SearchSpace",
    "SequentialNetwork",
    "Stage",
    "UnitSpace",
    "architecture_of",
]
