"""A basis is a kernel with its centres; moments are sums over rows of products of its features."""
