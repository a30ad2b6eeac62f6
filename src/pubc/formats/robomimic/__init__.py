"""robomimic HDF5 files."""
