"""HDF5 files from strangers: opened with their tricks refused, written so that disks may fail."""
