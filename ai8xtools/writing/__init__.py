"""Shared by all emitters: templates, large arrays, folders written completely or not at all."""
