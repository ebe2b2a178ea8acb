"""Checks for programs that silicon would execute wrongly without a word.

Source: docs/emulator.md, "What silicon would not tell you".
"""
