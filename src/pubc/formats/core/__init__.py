"""What every format uses: from raw arrays to a checked set, and findings on the way."""
