"""Problems: rows, a basis and a penalty; everything but the ridge."""
