"""The files of a project: C, plan and report."""
