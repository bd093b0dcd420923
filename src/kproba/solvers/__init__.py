"""Solvers of the regularised least-squares system, one a file.

A path is a system whose ridge is open. ``path.at(ρ)`` is a factor; ``factor.solve(h)`` gives coefficients and
``factor.leverage(path.project(Φ))`` the diagonal of the hat matrix, from which leave-one-out follows.
"""
