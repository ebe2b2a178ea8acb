"""Checks for programs that silicon would execute wrongly without a word.

Source: spec/machine.md section 9.
"""
