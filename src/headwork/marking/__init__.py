"""Marking: right, right from there on, or wrong, and what it is consistent with."""
