"""One module a figure: its caption, `compute()` (a table) and `draw(table)` (a picture)."""
