"""What every room uses: errors, records, units, numbers as text, files, the table of quantities."""
