"""ONNX graphs become descriptions, with numpy alone.

`constants` computes what does not depend on the data, `layers` follows the nodes.
"""
