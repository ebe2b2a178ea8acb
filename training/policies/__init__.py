"""The YAML files that say how a run goes on: learning rates and quantization-aware training."""
