"""A fitted model as a document, and as a file.

In: a fitted estimator. Out: a JSON file that predicts, prints and draws without the data.
"""
