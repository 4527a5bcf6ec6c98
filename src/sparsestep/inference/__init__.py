"""Intervals of a chosen model, notes for its reader, and a table to print."""
