"""Formats made of zarr arrays: Diffusion Policy and TriFinger."""
