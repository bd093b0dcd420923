"""Data: arrays, files, Dask collections, the papers' toy problems, and real datasets from a folder or OpenML."""
