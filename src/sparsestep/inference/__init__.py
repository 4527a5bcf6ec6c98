"""What can be said of a chosen model: standard errors, intervals, notes, and a table to print."""
