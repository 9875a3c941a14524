"""Sheets: problems as data."""
