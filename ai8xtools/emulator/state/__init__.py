"""What writes leave in an accelerator: registers, memories, power."""
