"""ONNX graphs become descriptions, with numpy alone.

`door` makes a graph of operators, `layers` follows its nodes.
"""
