"""Exact numbers: roots, exponentials, their text and their certain digits."""
