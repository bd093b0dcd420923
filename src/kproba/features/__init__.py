"""Features from data that is not a table: bags of descriptors, images, sequences."""
