"""Kernel logistic regression on a few greedily chosen rows: the algorithm of the 2001 paper.

``model.py`` fits the coefficients for given import points, ``search.py`` finds the next point, and ``path.py`` repeats
both until the stopping rule holds, from large ridges to small ones. ``held_out.py`` scores each row by the model
without it. ``streamed.py`` finds points by passes over rows that do not fit into memory.
"""
