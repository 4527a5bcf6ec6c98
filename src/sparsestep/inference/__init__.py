"""What is known of a chosen model.

In: its coefficients, moments and rows. Out: facts about its data, its standard errors and notes on
them (`facts`, `notes`); its coefficients to the last digit (`refinement`); intervals, and a table
to print (`summary`).
"""
