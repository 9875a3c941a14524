"""The bench: a page where the numbers are alive. The same Python answers it here and in the browser."""
