"""Parquet files from strangers, and our own."""
