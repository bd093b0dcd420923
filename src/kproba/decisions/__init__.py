"""Decisions from probabilities: rejecting uncertain rows, and sets of plausible labels."""
