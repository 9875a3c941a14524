"""Inspecting: somebody's attention held against the formula and against every mistake."""
