"""Decisions by probabilities: rejecting rows, sets of classes."""
