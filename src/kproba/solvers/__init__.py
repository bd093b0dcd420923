"""Solvers for the regularised least-squares system and the penalised likelihood, one per file.

A least-squares path is a system without its ridge: ``path.at(ρ)`` is a factor, ``factor.solve(h)`` gives coefficients,
and ``factor.leverage(path.project(Φ))`` the diagonal of the hat matrix, from which leave-one-out scores follow.
"""
