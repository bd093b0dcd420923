"""Features of data that is not a table: bags of descriptors, pictures, sequences."""
