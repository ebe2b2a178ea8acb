"""ai8xize.py --device MCU: portable C for a microcontroller without the accelerator."""
