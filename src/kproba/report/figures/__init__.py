"""Figures of a report as inline SVG and tables. Colours come from the page, so that they follow light and dark mode."""
