"""Rivals side by side in one run; results are stamped JSON files, tables are generated from them."""
