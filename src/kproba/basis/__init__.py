"""A basis is a kernel and its centres; moments are the sums over rows in it."""
