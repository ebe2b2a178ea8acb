"""Every network of models/, with smaller images where layers allow, and its known size."""

from __future__ import annotations

from typing import Any

from tests.models.random_weights import Case

BIAS = {"bias": True}
MNIST: dict[str, Any] = {"num_channels": 1}

COUNTED: tuple[tuple[Case, int], ...] = (
    (Case("ai85net5", (1, 28, 28), MNIST), 71158),
    (Case("ai85net5", (3, 32, 32), {"dimensions": (32, 32)}), 72238),
    (Case("ai85netextrasmall", (1, 28, 28), MNIST), 2514),
    (Case("ai85digitsnet", (1, 8, 8)), 23594),
    (Case("ai85simplenet", (3, 32, 32), BIAS), 383012),
    (Case("ai85simplenetwide2x", (3, 32, 32), BIAS), 726628),
    (Case("ai85ressimplenet", (3, 32, 32)), 381792),
    (Case("ai85nascifarnet", (3, 32, 32), BIAS), 302602),
    (Case("ai85nascifarnet", (3, 32, 32), {"num_classes": 100, **BIAS}), 348772),
    (Case("ai85nasnet_sequential_mnist", (1, 28, 28), MNIST), 84506),
    (Case("ai85nasnet_sequential_cifar100", (3, 32, 32)), 791268),
    (Case("ai85nasnet_sequential_kws20", (128, 128)), 154645),
    (Case("ai85kws20net", (128, 128)), 126490),
    (Case("ai85kws20netv3", (128, 128)), 169472),
    (Case("ai85kws20netv3", (128, 128), BIAS), 170125),
    (Case("ai87kws20netv3", (128, 128), die=87), 148928),
    (Case("ai85kws20netnas", (128, 128)), 425941),
    (Case("ai85faceidnet", (3, 160, 120)), 176336),
    (Case("ai85faceidnet_112", (3, 112, 112), BIAS), 892016),
    (Case("ai85unetlarge", (48, 24, 16)), 279084),
    (Case("ai85tinierssd", (3, 74, 74), {"num_classes": 11}), 336336),
    (Case("ai85tinierssdface", (3, 224, 168)), 275720),
    (Case("ai85autoencoder", (256, 3)), 136800),
    (Case("ai85actiontcn", (15, 96, 48, 48)), 376197),
    (Case("bayer2rgbnet", (4, 16, 24)), 174),
    (Case("ai85cdnet", (3, 128, 128)), 57778),
    (Case("ai87netmobilenetv2cifar100", (3, 32, 32), BIAS, die=87), 1999680),
    (Case("ai87netmobilenetv2cifar100_m0_75", (3, 32, 32), BIAS, die=87), 1348468),
    (Case("ai87netmobilenetv2cifar100_m0_5", (3, 32, 32), BIAS, die=87), 635600),
    (Case("ai87effnetv2", (3, 32, 32), BIAS, die=87), 759188),
    (Case("ai87imageneteffnetv2", (3, 112, 112), BIAS, die=87), 1691624),
    (Case("ai85firetestnet", (3, 32, 32)), 1366),
    (Case("ai85net80expansion", (1, 28, 28), MNIST), 26842),
    (Case("ai85net80wide", (1, 28, 28), MNIST), 126490),
    (Case("ai85netwide", (1, 28, 28), MNIST), 337630),
    (Case("ai85net6", (3, 32, 32), {"dimensions": (32, 32)}), 140138),
    (Case("ai85net20", (3, 32, 32), {"dimensions": (32, 32)}), 202234),
    (Case("ai85squeezenet", (3, 32, 32)), 111552),
    (Case("ai85kws20netv2", (128, 128)), 368576),
    (Case("ai85kws20netv2batchnorm", (128, 128), BIAS), 369545),
    (Case("ai85audionet", (128, 128), die=87), 113184),
    (Case("ai85afsknet", (1, 22)), 3272),
    (Case("ai85unetsmall", (3, 32, 24), BIAS), 63168),
    (Case("ai85unetmedium", (3, 32, 24), BIAS), 221080),
    (Case("ai85tinierssdqr", (3, 120, 160)), 294848),
    (Case("ai87netmobilefacenet_112", (3, 112, 112), BIAS, die=87), 851712),
    (Case("ai87fpndetector", (3, 128, 128), {"dimensions": (128, 128)}, die=87), 1554295),
)
UNCOUNTED = (Case("ai87netmobilenetv2", (3, 224, 224), {"num_classes": 1000, **BIAS}, die=87),)
CASES = (*(case for case, _ in COUNTED), *UNCOUNTED)
TEACHERS = {
    "ir_50": 43607808,
    "ir_101": 65162624,
    "ir_152": 70770432,
    "ir_se_50": 43830528,
    "ir_se_101": 65534848,
    "ir_se_152": 71181568,
}
"""Networks for computers, which learn in floating point only."""
LARGE = {
    "ai85actiontcn",
    "ai87netmobilenetv2",
    "ai87netmobilenetv2cifar100",
    "ai87netmobilenetv2cifar100_m0_75",
    "ai87imageneteffnetv2",
}
"""Networks whose tests take several seconds each; relatives or parts are tested elsewhere too."""


def title(case: Case) -> str:
    """Return the name of a case for people."""
    keywords = (f"{k}={v}" for k, v in case.keywords.items() if k not in ("bias", "num_channels"))
    return " ".join((case.name, *keywords))
