"""Facts about the data of a chosen model and notes on them, its intervals, a table to print."""
