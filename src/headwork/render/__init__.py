"""Renderers: each sees a `Working` and nothing else."""
