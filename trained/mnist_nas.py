"""12k3 | 24k3 32k3 | 48k3 36k3 | 64k3, chosen from ai85nasnet_sequential_mnist.

Written by train.py --nas. Train it with --model FILE:NASNetwork, or put the file into models/.
"""

from torch import nn

import ai8x


class NASNetwork(nn.Module):
    """6 convolutions and a fully connected layer; the result has 32 bits."""

    def __init__(self, num_classes=10, **kwargs):
        super().__init__()
        keywords = ("weight_bits", "bias_bits", "quantize_activation")
        kwargs = {key: value for key, value in kwargs.items() if key in keywords}
        self.conv1 = ai8x.FusedConv2dBNReLU(1, 12, 3, padding=1, bias=True, **kwargs)
        self.conv2 = ai8x.FusedMaxPoolConv2dBNReLU(
            12, 24, 3, padding=1, pool_size=2, pool_stride=2, bias=True, **kwargs
        )
        self.conv3 = ai8x.FusedConv2dBNReLU(24, 32, 3, padding=1, bias=True, **kwargs)
        self.conv4 = ai8x.FusedMaxPoolConv2dBNReLU(
            32, 48, 3, padding=1, pool_size=2, pool_stride=2, bias=True, **kwargs
        )
        self.conv5 = ai8x.FusedConv2dBNReLU(48, 36, 3, padding=1, bias=True, **kwargs)
        self.conv6 = ai8x.FusedMaxPoolConv2dBNReLU(
            36, 64, 3, padding=1, pool_size=2, pool_stride=2, bias=True, **kwargs
        )
        self.fc = ai8x.Linear(576, num_classes, bias=True, wide=True, **kwargs)

    def forward(self, x):
        """Return the scores of the classes."""
        x = self.conv1(x)
        x = self.conv2(x)
        x = self.conv3(x)
        x = self.conv4(x)
        x = self.conv5(x)
        x = self.conv6(x)
        return self.fc(x.flatten(1))


def nasnetwork(pretrained=False, **kwargs):
    """Make a `NASNetwork`."""
    assert not pretrained, "there are no built-in weights"
    return NASNetwork(**kwargs)


models = [{"name": "nasnetwork", "min_input": 1, "dim": 2}]
