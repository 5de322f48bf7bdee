"""What every package uses: errors, files, validation, records and models."""
