"""The YAML files that control a run: learning rates and quantization-aware training."""
