"""The user's own data without a Python file: pictures and sounds in class folders, CSV, npz arrays.

`settings` is what options say, `preparation` turns a file into numbers as in training (also for the
emulator, without torch), `folders`, `tables` and `arrays` find and read samples, `sets` makes data
sets of them.
Source: docs/own-data.md.
"""
